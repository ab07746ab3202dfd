#include "ml/input/format/image_set.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr char kModel[] =
    "input_shape: [32, 32, 3] loss { sparse_categorical_crossentropy {} }";

// Pixel (y, x) of channel c is y + 32 c.
std::string CifarRecord(int label) {
  std::string record(1, static_cast<char>(label));
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 32; ++y) {
      record += std::string(32, static_cast<char>(y + 32 * c));
    }
  }
  return record;
}

TEST(ImageSetTest, ReadsCifarAsHeightWidthChannels) {
  WriteTestFile("batch_1.bin", CifarRecord(3) + CifarRecord(9));
  WriteTestFile("batch_2.bin", Gzip(CifarRecord(0)));
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll("cifar { file: 'batch_[12].bin' }", kModel));
  EXPECT_EQ(batch.size, 3);
  EXPECT_THAT(batch.labels, ElementsAre(3, 9, 0));
  ASSERT_EQ(batch.dense[0].values.size(), 3 * 3072);
  const float* second_row = batch.dense[0].values.data() + 3072 + 32 * 3;
  for (int c = 0; c < 3; ++c) {
    EXPECT_FLOAT_EQ(second_row[c], (1 + 32 * c) / 255.0f);
  }
}

TEST(ImageSetTest, ChannelsAreNormalisedEachByItsOwn) {
  WriteTestFile("normal.bin", CifarRecord(0));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("cifar { file: 'normal.bin' } image { mean: [0.5, 0, 1] "
              "stddev: [1, 2, 0.25] }",
              kModel));
  EXPECT_THAT(batch.dense[0].values[0], FloatEq(-0.5f));
  EXPECT_THAT(batch.dense[0].values[1], FloatEq(32 / 255.0f / 2));
  EXPECT_THAT(batch.dense[0].values[2], FloatEq((64 / 255.0f - 1) * 4));
}

TEST(ImageSetTest, PartsOfARecordAndUnknownClassesAreNamedOrLeftOut) {
  const struct {
    std::string bytes;
    std::string want;
  } cases[] = {
      {CifarRecord(1) + CifarRecord(2).substr(0, 100),
       "corrupt.bin at byte 3073: ends 100 bytes into a record of 3073"},
      {CifarRecord(1) + CifarRecord(10),
       "corrupt.bin at byte 3073: label 10 is not one of 10 classes"},
  };
  for (const auto& c : cases) {
    WriteTestFile("corrupt.bin", c.bytes);
    EXPECT_THAT(ReadAll("cifar { file: 'corrupt.bin' }", kModel),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(c.want)));
    ASSERT_OK_AND_ASSIGN(
        const Batch rest,
        ReadAll("cifar { file: 'corrupt.bin' } on_corrupt: SKIP", kModel));
    EXPECT_THAT(rest.labels, ElementsAre(1));
  }
}

TEST(ImageSetTest, AShapeMayLeaveOutAxesOfOneOrAll) {
  WriteTestFile("images", IdxImagesFile(CountingImages(2, 2, 3)));
  WriteTestFile("labels", IdxLabelsFile({0, 1}));
  const std::string dataset = "idx { images: 'images' labels: 'labels' }";
  for (const char* shape : {"[2, 3]", "[2, 3, 1]", "[1, 2, 3]", "6"}) {
    EXPECT_OK(ReadAll(dataset, absl::StrCat("input_shape: ", shape)));
  }
  for (const char* shape : {"[3, 2]", "5", "[6, 2]", "[2, 3, 2]"}) {
    EXPECT_THAT(ReadAll(dataset, absl::StrCat("input_shape: ", shape)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("model input input is ["),
                               HasSubstr("but the images are [2, 3, 1]"))));
  }
}

TEST(ImageSetTest, InputsOfOtherColumnsAreRefused) {
  WriteTestFile("one.bin", CifarRecord(0));
  for (const char* input : {"ids {}", "dense { column { name: 'age' } }"}) {
    EXPECT_THAT(
        ReadAll("cifar { file: 'one.bin' }",
                absl::StrCat("input { name: 'x' ", input, " }")),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("model input x must be dense and read the column")));
  }
}

}  // namespace
}  // namespace parasol
