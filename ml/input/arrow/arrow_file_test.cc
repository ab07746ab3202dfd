#include "ml/input/arrow/arrow_file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/arrow/column_values.h"
#include "ml/input/arrow/value_record.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFile[] = "ml/input/arrow/testdata/none.parquet";

class ArrowFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = ArrowLacks();
    if (!lacks.empty()) GTEST_SKIP() << lacks;
    copy_ = testing::TempDir() + "/copy.parquet";
    std::filesystem::copy_file(
        kFile, copy_, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(copy_, std::filesystem::perms::owner_all);
  }

  std::string copy_;
};

absl::Status ReadFirst(ArrowFile& file, std::vector<int64_t>& rows) {
  return file.ReadGroup(
      0, {1, 2}, [&](int64_t count, const std::vector<const ArrowArray*>&) {
        rows.push_back(count);
        return absl::OkStatus();
      });
}

TEST_F(ArrowFileTest, HasColumnsGroupsAndRows) {
  ASSERT_OK_AND_ASSIGN(const ArrowLibrary library, ArrowLibrary::Open());
  ASSERT_OK_AND_ASSIGN(const StoredFile stored, StoredFile::Open(copy_, true));
  ASSERT_OK_AND_ASSIGN(ArrowFile file, ArrowFile::Open(library, stored));
  EXPECT_EQ(file.groups(), 3);
  EXPECT_THAT(file.Find("age"), ElementsAre(2));
  EXPECT_EQ(file.columns()[2].type.name, "int32");
  std::vector<int64_t> rows;
  ASSERT_OK(ReadFirst(file, rows));
  EXPECT_THAT(rows, ElementsAre(16));
}

TEST_F(ArrowFileTest, AFileThatChangesWhileItIsReadIsNamed) {
  ASSERT_OK_AND_ASSIGN(const ArrowLibrary library, ArrowLibrary::Open());
  for (const bool keep_open : {true, false}) {
    ASSERT_OK_AND_ASSIGN(const StoredFile stored,
                         StoredFile::Open(copy_, keep_open));
    ASSERT_OK_AND_ASSIGN(ArrowFile file, ArrowFile::Open(library, stored));
    std::ofstream(copy_, std::ios::app) << "more";
    std::vector<int64_t> rows;
    EXPECT_THAT(ReadFirst(file, rows),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("copy.parquet at byte "),
                               HasSubstr("the file has changed"))));
    SetUp();
  }
}

TEST_F(ArrowFileTest, AFileThatVanishesWhileItIsReadIsNamed) {
  ASSERT_OK_AND_ASSIGN(const ArrowLibrary library, ArrowLibrary::Open());
  ASSERT_OK_AND_ASSIGN(const StoredFile stored, StoredFile::Open(copy_, false));
  ASSERT_OK_AND_ASSIGN(ArrowFile file, ArrowFile::Open(library, stored));
  std::filesystem::remove(copy_);
  std::vector<int64_t> rows;
  EXPECT_THAT(ReadFirst(file, rows),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("copy.parquet at byte "),
                             HasSubstr("No such file"))));
}

TEST_F(ArrowFileTest, WhatTheVisitorReturnsIsReturned) {
  ASSERT_OK_AND_ASSIGN(const ArrowLibrary library, ArrowLibrary::Open());
  ASSERT_OK_AND_ASSIGN(const StoredFile stored, StoredFile::Open(copy_, true));
  ASSERT_OK_AND_ASSIGN(ArrowFile file, ArrowFile::Open(library, stored));
  EXPECT_THAT(
      file.ReadGroup(0, {0},
                     [](int64_t, const std::vector<const ArrowArray*>&) {
                       return absl::CancelledError("enough");
                     }),
      StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
}

// One column's values of a row, of arrays that are made here.
absl::StatusOr<ColumnValues> ValuesOf(const ArrowType& type,
                                      const ArrowArray& array, int64_t row) {
  std::string out;
  ValueRecordWriter rows(out);
  rows.Begin();
  RETURN_IF_ERROR(AppendColumn(type, array, row, rows));
  rows.End();
  ColumnValues values(1);
  const std::string copy = out.substr(sizeof(uint32_t));
  RETURN_IF_ERROR(ReadValueRecord(copy, values));
  return values;
}

ArrowArray ArrayOf(const void** buffers, int64_t count, int64_t length) {
  ArrowArray array = {};
  array.buffers = buffers;
  array.n_buffers = count;
  array.length = length;
  return array;
}

TEST(ColumnValuesTest, OffsetsThatPointOutsideAreRefused) {
  ArrowType text;
  text.kind = ArrowType::Kind::kText;
  for (const std::vector<int32_t>& offsets : std::vector<std::vector<int32_t>>{
           {0, -1, 3}, {2, 1, 3}, {0, 9, 3}, {-4, 1, 3}}) {
    const void* buffers[] = {nullptr, offsets.data(), "abc"};
    EXPECT_THAT(ValuesOf(text, ArrayOf(buffers, 3, 2), 0).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("offset")));
  }
  ArrowType list = text;
  list.list = ArrowType::List::kList;
  const int32_t ends[] = {0, 1, 1};
  const void* buffers[] = {nullptr, ends, "abc"};
  ArrowArray child = ArrayOf(buffers, 3, 2);
  ArrowArray* children[] = {&child};
  const int32_t places[] = {0, 3};
  const void* of_list[] = {nullptr, places};
  ArrowArray array = ArrayOf(of_list, 2, 1);
  array.children = children;
  array.n_children = 1;
  EXPECT_THAT(ValuesOf(list, array, 0).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a list")));
}

TEST(ColumnValuesTest, AnIndexBesideItsDictionaryIsRefused) {
  const float numbers[] = {1, 2};
  const void* of_numbers[] = {nullptr, numbers};
  ArrowArray dictionary = ArrayOf(of_numbers, 2, 2);
  ArrowType type;
  type.kind = ArrowType::Kind::kFloat;
  type.index = ArrowType::Kind::kInt8;
  const int8_t indices[] = {1, 2, -1};
  const void* of_indices[] = {nullptr, indices};
  ArrowArray array = ArrayOf(of_indices, 2, 3);
  array.dictionary = &dictionary;
  ASSERT_OK_AND_ASSIGN(const ColumnValues values, ValuesOf(type, array, 0));
  EXPECT_EQ(values.front().front().AsNumber(), 2);
  for (const int64_t row : {1, 2}) {
    EXPECT_THAT(ValuesOf(type, array, row).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("an index")));
  }
}

TEST(ColumnValuesTest, AViewBesideItsBuffersIsRefused) {
  struct View {
    int32_t length;
    char start[4];
    int32_t buffer;
    int32_t offset;
  };
  const View views[] = {{13, "abc", 0, 0},
                        {13, "abc", 0, 4},
                        {13, "abc", 1, 0},
                        {-1, "abc", 0, 0},
                        {13, "abc", 0, -1}};
  const int64_t lengths[] = {16};
  const void* buffers[] = {nullptr, views, "abcdefghijklmnop", lengths};
  ArrowType type;
  type.kind = ArrowType::Kind::kTextView;
  const ArrowArray array = ArrayOf(buffers, 4, 5);
  EXPECT_OK(ValuesOf(type, array, 0).status());
  for (const int64_t row : {1, 2, 3, 4}) {
    EXPECT_THAT(ValuesOf(type, array, row).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a view")));
  }
}

double DecimalOf(int64_t high, uint64_t low, int scale) {
  const uint64_t halves[] = {low, static_cast<uint64_t>(high)};
  const void* buffers[] = {nullptr, halves};
  ArrowType type;
  type.kind = ArrowType::Kind::kDecimal128;
  type.scale = scale;
  const auto values = ValuesOf(type, ArrayOf(buffers, 2, 1), 0);
  EXPECT_OK(values.status());
  return values->front().front().AsNumber().value();
}

TEST(ColumnValuesTest, ADecimalIsTheDoubleThatItsDigitsAreReadAs) {
  EXPECT_EQ(DecimalOf(0, 12345, 2), 123.45);
  EXPECT_EQ(DecimalOf(-1, static_cast<uint64_t>(-1), 1), -0.1);
  EXPECT_EQ(DecimalOf(0, 0, 30), 0);
  EXPECT_EQ(DecimalOf(0, 7, -3), 7000);
  EXPECT_EQ(DecimalOf(1, 0, 0), 18446744073709551616.0);
  EXPECT_EQ(DecimalOf(std::numeric_limits<int64_t>::min(), 0, 0),
            -170141183460469231731687303715884105728.0);
}

TEST(ColumnValuesTest, Float16BecomesFloat32) {
  const uint16_t bits[] = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff,
                           0x0001, 0x3555, 0x0400, 0x03ff};
  const float expected[] = {0,          -0.0f,         1,
                            -2,         65504,         5.9604644775390625e-8f,
                            .33325195f, 6.1035156e-5f, 6.0975552e-5f};
  const void* buffers[] = {nullptr, bits};
  ArrowType type;
  type.kind = ArrowType::Kind::kHalf;
  for (int64_t i = 0; i < 9; ++i) {
    ASSERT_OK_AND_ASSIGN(const ColumnValues values,
                         ValuesOf(type, ArrayOf(buffers, 2, 9), i));
    EXPECT_EQ(values.front().front().AsNumber(), expected[i]) << i;
  }
}

}  // namespace
}  // namespace parasol
