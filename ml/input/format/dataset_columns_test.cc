#include "ml/input/format/dataset_columns.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

job::Dataset DatasetOf(const std::string& text) {
  job::Dataset dataset;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &dataset));
  return dataset;
}

absl::StatusOr<Columns> Read(const std::string& text) {
  return ReadColumns(DatasetOf(text), testing::TempDir());
}

TEST(DatasetColumnsTest, SomeJobsListThem) {
  const auto criteo = ListedColumns(DatasetOf("criteo { file: 'no' }"));
  ASSERT_TRUE(criteo.has_value());
  EXPECT_THAT(criteo->names, SizeIs(40));
  EXPECT_THAT(criteo->labels_and_weights, ElementsAre("label"));
  const auto ratings = ListedColumns(DatasetOf("ratings { file: 'no' }"));
  ASSERT_TRUE(ratings.has_value());
  EXPECT_THAT(ratings->names, ElementsAre("user", "item", "rating", "time"));
  ASSERT_OK_AND_ASSIGN(
      const Columns csv,
      Read("csv { file: 'no' column: 'a' column: 'b' column: 'c' label { "
           "column: 'b' } weight_column: 'a' }"));
  EXPECT_THAT(csv.names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(csv.labels_and_weights, ElementsAre("b", "a"));
  for (const char* text : {"csv { file: 'no' }", "tfrecord { file: 'no' }",
                           "idx { images: 'no' }", ""}) {
    EXPECT_FALSE(ListedColumns(DatasetOf(text)).has_value()) << text;
  }
}

TEST(DatasetColumnsTest, AHeaderIsThatOfTheFirstFileThatHasOne) {
  WriteTestFile("columns_1.csv", "\n\n");
  const std::string file = "\xef\xbb\xbf# made by\n\n \"b, c\" ,a\r\n1,2\n";
  for (const std::string& bytes : {file, Gzip(file)}) {
    WriteTestFile("columns_2.csv", bytes);
    ASSERT_OK_AND_ASSIGN(const Columns columns,
                         Read("csv { file: 'columns_*.csv' skip_lines: 1 }"));
    EXPECT_THAT(columns.names, ElementsAre("b, c", "a"));
    EXPECT_THAT(columns.labels_and_weights, IsEmpty());
  }
}

// The header ends behind what is read of the file first.
TEST(DatasetColumnsTest, ALongHeaderIsReadToItsEnd) {
  std::string header = "first";
  for (int i = 0; i < 3000; ++i) {
    absl::StrAppend(&header, ",", std::string(1000, 'x'), i);
  }
  WriteTestFile("long.csv", header + "\n" + std::string(100, '1') + "\n");
  ASSERT_OK_AND_ASSIGN(const Columns columns, Read("csv { file: 'long.csv' }"));
  ASSERT_THAT(columns.names, SizeIs(3001));
  EXPECT_THAT(columns.names.back(), HasSubstr("x2999"));
  // The last line end of what is read first is inside quotes.
  WriteTestFile("long.csv",
                absl::StrCat("a,", std::string((1 << 20) - 100, 'x'), ",\"b\n",
                             std::string(200, 'b'), "\",c\n1,2,3,4\n"));
  ASSERT_OK_AND_ASSIGN(const Columns quoted, Read("csv { file: 'long.csv' }"));
  ASSERT_THAT(quoted.names, SizeIs(4));
  EXPECT_THAT(quoted.names[2], HasSubstr("b\nbbb"));
  EXPECT_EQ(quoted.names[3], "c");
}

TEST(DatasetColumnsTest, WhatIsNoHeaderIsNamed) {
  WriteTestFile("none.csv", "");
  EXPECT_THAT(Read("csv { file: 'none.csv' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("none.csv: the file has no line of columns' "
                                 "names in it")));
  WriteTestFile("quote.csv", "a,\"b\n1,2\n");
  EXPECT_THAT(Read("csv { file: 'quote.csv' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("quote.csv: the header")));
  EXPECT_THAT(Read("csv { file: 'missing.csv' }"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing.csv")));
  EXPECT_THAT(Read("idx { images: 'a' labels: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("have named columns")));
}

std::string Named(const std::string& name) {
  return TfRecord(ExampleOf(IntegerFeature(name, {1})));
}

TEST(DatasetColumnsTest, ATfRecordHasThoseOfItsFirstRecords) {
  std::string first;
  for (int i = 0; i < 999; ++i) first += Named("b");
  WriteTestFile("columns_1.tfrecord", first);
  WriteTestFile("columns_2.tfrecord", Gzip(Named("a") + Named("late")));
  ASSERT_OK_AND_ASSIGN(const Columns columns,
                       Read("tfrecord { file: 'columns_*.tfrecord' label: 'b' "
                            "weight: 'w' }"));
  EXPECT_THAT(columns.names, ElementsAre("a", "b"));
  EXPECT_THAT(columns.labels_and_weights, ElementsAre("b", "w"));
}

TEST(DatasetColumnsTest, DamagedTfRecordsArePassedOver) {
  std::string bad_bytes = Named("bad");
  bad_bytes[14] ^= 1;
  std::string bad_length = Named("lost");
  bad_length[0] ^= 1;
  const std::string cut = Named("cut");
  WriteTestFile("bad_1.tfrecord", bad_bytes + Named("a") + bad_length);
  WriteTestFile("bad_2.tfrecord", Named("b") + cut.substr(0, cut.size() - 1));
  WriteTestFile("bad_3.tfrecord", "x");
  ASSERT_OK_AND_ASSIGN(const Columns columns,
                       Read("tfrecord { file: 'bad_*.tfrecord' }"));
  EXPECT_THAT(columns.names, ElementsAre("a", "b"));
  EXPECT_THAT(Read("tfrecord { file: 'bad_3.tfrecord' }"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("bad_3.tfrecord, behind 0 records: ends "
                                 "within the frame of a record")));
}

}  // namespace
}  // namespace parasol
