#include "ml/input/format/idx_reader.h"

#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

TEST(IdxReaderTest, ReadsTheBytesOfTheFormat) {
  const std::string path =
      WriteTestFile("images", Bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,
                                     1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}));
  ASSERT_OK_AND_ASSIGN(const IdxImages images, ReadIdxImages(path));
  EXPECT_EQ(images.count, 2);
  EXPECT_EQ(images.height, 1);
  EXPECT_EQ(images.width, 3);
  EXPECT_THAT(images.pixels, ElementsAre(1, 2, 3, 4, 5, 255));
}

// The labels of a file.
absl::StatusOr<std::vector<uint8_t>> LabelsOf(const std::string& path) {
  ASSIGN_OR_RETURN(IdxLabels read, ReadIdxLabels(path));
  EXPECT_EQ(read.announced, read.labels.size());
  return std::move(read.labels);
}

TEST(IdxReaderTest, ASampleHasTheFirstElements) {
  const std::string images =
      WriteTestFile("sample", IdxImagesFile(CountingImages(9, 2, 3)));
  ASSERT_OK_AND_ASSIGN(const IdxImages read, ReadIdxImages(images, 20));
  EXPECT_EQ(read.count, 3);
  EXPECT_EQ(read.announced, 9);
  EXPECT_EQ(read.pixels, CountingImages(3, 2, 3).pixels);
  ASSERT_OK_AND_ASSIGN(
      const IdxLabels labels,
      ReadIdxLabels(WriteTestFile("sample", IdxLabelsFile({7, 0, 9})), 2));
  EXPECT_THAT(labels.labels, ElementsAre(7, 0));
  EXPECT_EQ(labels.announced, 3);
}

TEST(IdxReaderTest, AnArchiveIsKnown) {
  EXPECT_THAT(ReadIdxImages(WriteTestFile("a.zip", "PK\x03\x04 and more")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.zip: is a zip archive")));
}

TEST(IdxReaderTest, GzipIsToldByItsBytesNotByItsName) {
  const std::string labels = IdxLabelsFile({7, 0, 9});
  EXPECT_THAT(LabelsOf(WriteTestFile("packed", Gzip(labels))),
              IsOkAndHolds(ElementsAre(7, 0, 9)));
  EXPECT_THAT(LabelsOf(WriteTestFile("plain.gz", labels)),
              IsOkAndHolds(ElementsAre(7, 0, 9)));
}

TEST(IdxReaderTest, GzipMayHaveSeveralMembers) {
  const std::string labels = IdxLabelsFile({7, 0, 9});
  const std::string path = WriteTestFile(
      "members.gz", Gzip(labels.substr(0, 9)) + Gzip(labels.substr(9)));
  EXPECT_THAT(LabelsOf(path), IsOkAndHolds(ElementsAre(7, 0, 9)));
}

TEST(IdxReaderTest, SetsLargerThanTheFirstAllocationComeWhole) {
  const IdxImages images = CountingImages(5000, 28, 28);
  const std::string path =
      WriteTestFile("many.gz", Gzip(IdxImagesFile(images)));
  ASSERT_OK_AND_ASSIGN(const IdxImages read, ReadIdxImages(path));
  EXPECT_EQ(read.pixels, images.pixels);
}

struct CorruptCase {
  std::string name;
  std::string bytes;
  std::string want;
};

void ExpectDataLoss(const CorruptCase& c, const absl::Status& status) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr(c.name), HasSubstr(c.want))));
}

TEST(IdxReaderTest, CorruptImagesAreDataLossAtAnOffset) {
  const std::string good = IdxImagesFile(CountingImages(2, 3, 3));
  std::string packed = Gzip(good);
  std::string bad_checksum = packed;
  bad_checksum[packed.size() - 6] ^= 1;
  const CorruptCase cases[] = {
      {"empty", "", "byte 0: ends within the magic number"},
      {"half_magic", good.substr(0, 2), "byte 2: ends within the magic number"},
      {"labels", IdxLabelsFile({1}), "byte 0: magic number is 2049, not 2051"},
      {"text", "hello, world, hello", "byte 0: magic number"},
      {"no_count", good.substr(0, 6), "byte 6: ends within the number"},
      {"no_height", good.substr(0, 8), "byte 8: ends within the height"},
      {"no_width", good.substr(0, 15), "byte 15: ends within the width"},
      {"cut_off", good.substr(0, 20), "byte 20: ends early"},
      {"one_byte_missing", good.substr(0, 33), "byte 33: ends early"},
      {"one_byte_more", good + "x", "byte 34: goes on"},
      {"no_pixels", Bytes({0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3}),
       "byte 4: the header announces 1 images of 0 x 3, which no"},
      {"too_many_pixels",
       Bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
              255}),
       "byte 4: the header announces 4294967295 images"},
      {"gzip_magic_only", packed.substr(0, 2), "byte 2: gzip data is cut off"},
      {"gzip_cut_off", packed.substr(0, packed.size() - 9), "gzip data is cut"},
      {"gzip_without_length", packed.substr(0, packed.size() - 1),
       "gzip data is cut off"},
      {"gzip_checksum", bad_checksum, "incorrect data check"},
      {"gzip_then_garbage", packed + "garbage", "gzip data is corrupt"},
      {"gzip_method", Bytes({0x1f, 0x8b, 1, 2, 3, 4}), "byte 0: magic number"},
      {"gzip_of_too_little", Gzip(good.substr(0, 20)), "byte 20: ends early"},
      {"gzip_of_too_much", Gzip(good + "x"), "byte 34: goes on"},
  };
  for (const CorruptCase& c : cases) {
    SCOPED_TRACE(c.name);
    ExpectDataLoss(c, ReadIdxImages(WriteTestFile(c.name, c.bytes)).status());
  }
}

TEST(IdxReaderTest, CorruptLabelsAreDataLossAtAnOffset) {
  const std::string good = IdxLabelsFile({1, 2, 3});
  const CorruptCase cases[] = {
      {"images", IdxImagesFile(CountingImages(1, 2, 2)), "2051, not 2049"},
      {"cut_off", good.substr(0, 10), "byte 10: ends early"},
      {"too_long", good + "xyz", "byte 11: goes on"},
  };
  for (const CorruptCase& c : cases) {
    SCOPED_TRACE(c.name);
    ExpectDataLoss(c, ReadIdxLabels(WriteTestFile(c.name, c.bytes)).status());
  }
}

TEST(IdxReaderTest, EveryFlippedByteOfGzipIsNoticedOrHarmless) {
  const IdxImages images = CountingImages(20, 4, 4);
  const std::string packed = Gzip(IdxImagesFile(images));
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string flipped = packed;
    flipped[i] ^= 0x10;
    const auto read = ReadIdxImages(WriteTestFile("flipped", flipped));
    if (!read.ok()) continue;
    EXPECT_EQ(read->pixels, images.pixels) << "byte " << i;
  }
}

TEST(IdxReaderTest, LyingHeaderAllocatesNoMoreThanTheFileHas) {
  // 2^31 images of 28 x 28 would be 1.7 TB.
  const std::string lie =
      Bytes({0, 0, 8, 3, 128, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28}) +
      std::string(1000, 'x');
  for (const std::string& bytes : {lie, Gzip(lie)}) {
    EXPECT_THAT(ReadIdxImages(WriteTestFile("lie", bytes)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte 1016")));
  }
  rusage usage;
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB";
}

TEST(IdxReaderTest, MissingFileIsNotFoundAndNamed) {
  EXPECT_THAT(
      ReadIdxImages("/no/such/images"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/images")));
}

TEST(IdxReaderTest, DirectoryIsRefused) {
  EXPECT_THAT(ReadIdxLabels(testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace parasol
