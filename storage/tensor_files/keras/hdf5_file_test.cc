#include "storage/tensor_files/keras/hdf5_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string FileOf(const std::string& name) {
  std::ifstream file("storage/tensor_files/keras/testdata/" + name,
                     std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<Hdf5Contents> ContentsOf(const std::string& bytes) {
  return ReadHdf5(bytes.size(), [&](uint64_t offset, absl::Span<char> out) {
    // The reader asks for nothing that is not there.
    EXPECT_LE(offset + out.size(), bytes.size());
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return absl::OkStatus();
  });
}

const Hdf5Array* Find(const Hdf5Contents& contents, const std::string& path) {
  for (const Hdf5Array& array : contents.arrays) {
    if (array.path == path) return &array;
  }
  ADD_FAILURE() << path << " is not there";
  return nullptr;
}

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes, const Hdf5Array& array) {
  size_t count = 1;
  for (const int64_t size : array.shape) count *= size;
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data() + array.data, count * sizeof(T));
  return values;
}

// testdata/make_files.py has the same numbers.
class Hdf5VersionsTest : public testing::TestWithParam<const char*> {};

TEST_P(Hdf5VersionsTest, ArraysOfH5pyAreRead) {
  const std::string bytes = FileOf(GetParam());
  ASSERT_OK_AND_ASSIGN(const Hdf5Contents contents, ContentsOf(bytes));
  const auto expect = [&]<typename T>(const std::string& path,
                                      const std::string& type,
                                      const std::vector<int64_t>& shape,
                                      const std::vector<T>& values) {
    SCOPED_TRACE(path);
    const Hdf5Array* array = Find(contents, path);
    ASSERT_NE(array, nullptr);
    EXPECT_EQ(array->type, type);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(ValuesOf<T>(bytes, *array), values);
  };
  const std::string group = "layers/dense/vars/";
  expect(group + "float32", "float32", {2, 3},
         std::vector<float>{0, 1, 2, 3, 4, 5});
  expect(group + "float16", "float16", {3},
         std::vector<uint16_t>{0x3c00, 0xb800, 0x7bff});
  expect(group + "float64", "float64", {}, std::vector<double>{0.1});
  expect(group + "int32", "int32", {2}, std::vector<int32_t>{-3, 4});
  expect("more/uint64", "uint64", {1},
         std::vector<uint64_t>{(uint64_t{1} << 63) + 1});
  expect("more/bfloat16", "bfloat16", {2},
         std::vector<uint16_t>{0x3f80, 0xc000});
  expect("more/compact", "float32", {2}, std::vector<float>{7, 8});
  expect("more/none", "float32", {0, 5}, std::vector<float>{});
  expect("many/3", "float32", {}, std::vector<float>{3});
  // Listed, but nobody can read it.
  EXPECT_EQ(Find(contents, "more/big_endian")->type, "");
}

TEST_P(Hdf5VersionsTest, AttributesOfGroupsAreTexts) {
  ASSERT_OK_AND_ASSIGN(const Hdf5Contents contents,
                       ContentsOf(FileOf(GetParam())));
  EXPECT_THAT(
      contents.attributes.at("layers/dense/vars"),
      UnorderedElementsAre(Pair("name", "hidden"), Pair("bytes", "text")));
}

TEST_P(Hdf5VersionsTest, WhatIsCutOffIsAnErrorThatNamesTheByte) {
  const std::string good = FileOf(GetParam());
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_THAT(ContentsOf(good.substr(0, size)).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte ")))
        << size;
  }
}

// What is still read lies in the file.
TEST_P(Hdf5VersionsTest, AnyByteMayBeAnotherAndNothingCrashes) {
  const std::string good = FileOf(GetParam());
  int refused = 0;
  for (size_t place = 0; place < good.size(); ++place) {
    std::string changed = good;
    // All bits of some bytes, one of the others.
    changed[place] ^= place % 3 == 0 ? '\xFF' : char(1 << place % 8);
    const auto contents = ContentsOf(changed);
    if (!contents.ok()) {
      ++refused;
      continue;
    }
    for (const Hdf5Array& array : contents->arrays) {
      ASSERT_LE(array.data, good.size()) << place;
    }
  }
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Hdf5VersionsTest,
                         testing::Values("h5py_earliest.h5", "h5py_latest.h5"),
                         [](const testing::TestParamInfo<const char*>& file) {
                           return std::string(file.param, 5, 4) +
                                  std::to_string(file.index);
                         });

TEST(Hdf5FileTest, ManyNamesAreInMoreThanOnePieceOfATree) {
  ASSERT_OK_AND_ASSIGN(const Hdf5Contents contents,
                       ContentsOf(FileOf("h5py_earliest.h5")));
  for (int i = 0; i < 20; ++i) Find(contents, absl::StrCat("many/", i));
}

TEST(Hdf5FileTest, ChunksAreRefusedByName) {
  EXPECT_THAT(ContentsOf(FileOf("h5py_chunks.h5")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a/vars/0 is in chunks, compressed perhaps, "
                                 "which is not read here: save the model")));
}

TEST(Hdf5FileTest, OtherFilesAreNamedAsSuch) {
  EXPECT_THAT(ContentsOf("PK is an archive").status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("does not begin as HDF5 does")));
}

std::string Number(uint64_t value, int bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

constexpr uint64_t kRootAddress = 48;

// A file whose root has one message, in the newer form, and what follows it.
std::string FileWith(uint64_t kind, const std::string& message,
                     const std::string& rest = "") {
  const std::string header = absl::StrCat(
      "OHDR", Number(2, 1), Number(0, 1), Number(4 + message.size(), 1),
      Number(kind, 1), Number(message.size(), 2), Number(0, 1), message,
      Number(0, 4), rest);
  return absl::StrCat(std::string("\x89HDF\r\n\x1a\n", 8), Number(2, 1),
                      Number(8, 1), Number(8, 1), Number(0, 1), Number(0, 8),
                      Number(~uint64_t{0}, 8),
                      Number(kRootAddress + header.size(), 8),
                      Number(kRootAddress, 8), Number(0, 4), header);
}

// A group whose only link is to itself, in the newer form.
TEST(Hdf5FileTest, CirclesEnd) {
  const std::string link = absl::StrCat(
      Number(1, 1), Number(0, 1), Number(1, 1), "a", Number(kRootAddress, 8));
  EXPECT_THAT(ContentsOf(FileWith(6, link)).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("too deep")));
}

// Where what follows the header of a message of 16 bytes begins.
constexpr uint64_t kRest = kRootAddress + 7 + 4 + 16 + 4;

// A root of the older kind with as many entries for this name, to nowhere.
std::string FileOfEntries(int entries, const std::string& name,
                          uint64_t cache_type = 0) {
  const uint64_t leaf = kRest + 24 + 16;
  const uint64_t heap = leaf + 8 + 40 * entries;
  std::string rest =
      absl::StrCat("TREE", Number(0, 1), Number(0, 1), Number(1, 2),
                   Number(0, 8), Number(0, 8), Number(0, 8), Number(leaf, 8),
                   "SNOD", Number(1, 2), Number(entries, 2));
  for (int i = 0; i < entries; ++i) {
    absl::StrAppend(&rest, Number(0, 8), Number(~uint64_t{0}, 8),
                    Number(cache_type, 8), Number(0, 8), Number(0, 8));
  }
  absl::StrAppend(&rest, "HEAP", Number(0, 4), Number(name.size() + 1, 8),
                  Number(0, 8), Number(heap + 32, 8), name, Number(0, 1));
  return FileWith(0x11, absl::StrCat(Number(kRest, 8), Number(heap, 8)), rest);
}

// Each copy would have the size of the file.
TEST(Hdf5FileTest, EntriesThatShareANameAreRefused) {
  const std::string name(1000, 'n');
  EXPECT_THAT(ContentsOf(FileOfEntries(2, name)).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("entries share their names")));
  EXPECT_THAT(ContentsOf(FileOfEntries(1, name)).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("bytes are said to follow")));
}

TEST(Hdf5FileTest, LinksToOtherNamesAreRefusedByName) {
  EXPECT_THAT(ContentsOf(FileOfEntries(1, "alias", /*cache_type=*/2)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the root has a link to another name or file, "
                                 "alias, which is not read here: save")));
  const std::string link =
      absl::StrCat(Number(1, 1), Number(8, 1), Number(1, 1), Number(1, 1), "a",
                   Number(1, 2), "b");
  EXPECT_THAT(ContentsOf(FileWith(6, link)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("another name or file, a, which")));
}

TEST(Hdf5FileTest, AttributesThatShareATextAreRefused) {
  const std::string text(1000, 't');
  const auto file_of = [&](int attributes) {
    // A message of 16 bytes, which goes on where the attributes are.
    const uint64_t heap = kRest;
    const uint64_t more = heap + 16 + 16 + text.size();
    std::string messages = "OCHK";
    for (int i = 0; i < attributes; ++i) {
      const std::string attribute = absl::StrCat(
          Number(3, 1), Number(0, 1), Number(2, 2), Number(8, 2), Number(4, 2),
          Number(0, 1), std::string(1, static_cast<char>('a' + i)),
          Number(0, 1), Number(0x19, 1), Number(1, 3), Number(16, 4),
          Number(2, 4), Number(text.size(), 4), Number(heap, 8), Number(1, 4));
      absl::StrAppend(&messages, Number(0x0C, 1), Number(attribute.size(), 2),
                      Number(0, 1), attribute);
    }
    absl::StrAppend(&messages, Number(0, 4));
    const std::string rest = absl::StrCat(
        "GCOL", Number(1, 4), Number(32 + text.size(), 8), Number(1, 2),
        Number(1, 2), Number(0, 4), Number(text.size(), 8), text, messages);
    return FileWith(
        0x10, absl::StrCat(Number(more, 8), Number(messages.size(), 8)), rest);
  };
  ASSERT_OK_AND_ASSIGN(const Hdf5Contents contents, ContentsOf(file_of(1)));
  EXPECT_THAT(contents.attributes.at(""),
              UnorderedElementsAre(Pair("a", text)));
  EXPECT_THAT(ContentsOf(file_of(3)).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("too many attributes have this text")));
}

}  // namespace
}  // namespace parasol
