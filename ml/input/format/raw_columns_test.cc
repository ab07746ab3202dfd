#include "ml/input/format/raw_columns.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<std::unique_ptr<RawColumns>> Open(const std::string& text) {
  job::Dataset dataset;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &dataset));
  return RawColumns::Open(dataset, testing::TempDir());
}

// The values of a row as texts; "-": missing.
std::vector<std::string> Texts(const ColumnValues& row) {
  std::vector<std::string> texts;
  for (const std::vector<FieldValue>& values : row) {
    std::vector<std::string> parts;
    for (const FieldValue& value : values) {
      char buffer[FieldValue::kMaxNumberBytes];
      parts.emplace_back(value.AsText(buffer));
    }
    texts.push_back(parts.empty() ? "-" : absl::StrJoin(parts, "+"));
  }
  return texts;
}

TEST(RawColumnsTest, CsvHasItsColumnsWhateverTheJobReads) {
  WriteTestFile("a.csv", "age, x ,y\n1,?,no\n,\"a,b\",yes\n7,8\n");
  ASSERT_OK_AND_ASSIGN(const auto columns,
                       Open("csv { file: 'a.csv' missing: '?' }"));
  EXPECT_THAT(columns->names(), ElementsAre("age", "x", "y"));
  ASSERT_EQ(columns->size(), 3);
  ColumnValues row;
  ASSERT_OK(columns->Read(0, row));
  EXPECT_THAT(Texts(row), ElementsAre("1", "-", "no"));
  ASSERT_OK(columns->Read(1, row));
  EXPECT_THAT(Texts(row), ElementsAre("-", "a,b", "yes"));
  EXPECT_THAT(
      columns->Read(2, row),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a.csv line 4 at byte")));
}

TEST(RawColumnsTest, ATfRecordHasLateFeaturesIfTheyAreWanted) {
  std::string records;
  for (int i = 0; i < 1000; ++i) {
    records += TfRecord(ExampleOf(IntegerFeature("a", {i})));
  }
  records += TfRecord(
      ExampleOf(IntegerFeature("late", {7}) + IntegerFeature("later", {8})));
  WriteTestFile("late.tfrecord", records);
  job::Dataset set;
  set.mutable_tfrecord()->add_file("late.tfrecord");
  ASSERT_OK_AND_ASSIGN(const auto first,
                       RawColumns::Open(set, testing::TempDir()));
  EXPECT_THAT(first->names(), ElementsAre("a"));
  ASSERT_OK_AND_ASSIGN(
      const auto wanted,
      RawColumns::Open(set, testing::TempDir(), {"late", "a", "none"}));
  EXPECT_THAT(wanted->names(), ElementsAre("a", "late"));
  ColumnValues row;
  ASSERT_OK(wanted->Read(1000, row));
  EXPECT_THAT(Texts(row), ElementsAre("-", "7"));
}

TEST(RawColumnsTest, ATfRecordHasItsFeatures) {
  const std::string good = TfRecord(ExampleOf(TextFeature("user", {"a", "b"}) +
                                              RealFeature("x", {1.5}))) +
                           TfRecord(ExampleOf(IntegerFeature("y", {-3})));
  WriteTestFile("a.tfrecord", good + TfRecord("no example") + "rest");
  ASSERT_OK_AND_ASSIGN(const auto columns,
                       Open("tfrecord { file: 'a.tfrecord' }"));
  EXPECT_THAT(columns->names(), ElementsAre("user", "x", "y"));
  ASSERT_EQ(columns->size(), 4);
  ColumnValues row;
  ASSERT_OK(columns->Read(0, row));
  EXPECT_THAT(Texts(row), ElementsAre("a+b", "1.5", "-"));
  ASSERT_OK(columns->Read(1, row));
  EXPECT_THAT(Texts(row), ElementsAre("-", "-", "-3"));
  EXPECT_THAT(columns->Read(2, row), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(columns->Read(3, row), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(RawColumnsTest, CriteoAndRatingsHaveColumnsOfTheirOwn) {
  WriteTestFile("ratings.dat", "1::2::3::4\n");
  ASSERT_OK_AND_ASSIGN(const auto ratings,
                       Open("ratings { file: 'ratings.dat' }"));
  EXPECT_THAT(ratings->names(), ElementsAre("user", "item", "rating", "time"));
  ASSERT_OK_AND_ASSIGN(const auto criteo,
                       Open("criteo { file: 'ratings.dat' }"));
  EXPECT_EQ(criteo->names().size(), 40);
}

TEST(RawColumnsTest, ImagesHaveNone) {
  ASSERT_OK_AND_ASSIGN(const auto images,
                       Open("idx { images: 'a' labels: 'b' }"));
  EXPECT_EQ(images, nullptr);
}

TEST(RawColumnsTest, AMissingFileIsNamedWithTheOneThatMayBeMeant) {
  WriteTestFile("train_set.csv", "a\n");
  EXPECT_THAT(Open("csv { file: 'trian_set.csv' }"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean \"train_set.csv\"?")));
  EXPECT_THAT(
      Open("csv { file: 'zebra.bin' }"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("is --data_dir=")));
}

}  // namespace
}  // namespace parasol
