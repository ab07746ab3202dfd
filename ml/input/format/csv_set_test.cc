#include "ml/input/format/csv_set.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/feature/fingerprint.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBinary[] = "loss { binary_crossentropy {} } ";
constexpr char kSquared[] = "loss { mean_squared_error {} } ";

TEST(CsvSetTest, ColumnsAreNamedByTheHeaderOfEachFile) {
  WriteTestFile("header_1.csv", "x,label,w\r\n1.5,1,2\r\n\r\n-2,0,1\r\n");
  WriteTestFile("header_2.csv", "x,label,w\n 3 ,1,0.5");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("csv { file: 'header_*.csv' label { column: 'label' } "
              "weight_column: 'w' }",
              absl::StrCat(kBinary, "input { name: 'x' dense { shape: 1 } }")));
  EXPECT_EQ(batch.size, 3);
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1.5, -2, 3));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.weights, ElementsAre(2, 1, 0.5));
}

// As UCI's Adult: blanks behind commas, "?" for missing, a first line that is
// none, labels that end in a dot.
TEST(CsvSetTest, ReadsAdultsDialect) {
  WriteTestFile("adult.test",
                "|1x3 Cross validator\n"
                "25, Private, 226802, <=50K.\n"
                "28, ?, ?, >50K.\n\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("csv { file: 'adult.test' skip_lines: 1 missing: '?' "
              "column: ['age', 'work', 'weight', 'income'] label { "
              "column: 'income' positive: ['>50K', '>50K.'] } }",
              absl::StrCat(
                  kBinary,
                  "input { name: 'n' dense { column { name: 'age' mean: 20 "
                  "stddev: 2 } column { name: 'weight' log1p: true "
                  "default_value: 0 } } } "
                  "input { name: 'c' ids { column { name: 'work' vocabulary { "
                  "value: 'Private' } } column { name: 'age' boundaries { "
                  "boundary: 26 } } } }")));
  EXPECT_THAT(batch.dense[0].shape, ElementsAre(2));
  EXPECT_THAT(batch.dense[0].values,
              ElementsAre(2.5, FloatEq(12.331837f), 4, 0));
  EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(0, 3, 2, 4));
  EXPECT_THAT(batch.ids[0].weights, IsEmpty());
  EXPECT_THAT(batch.labels, ElementsAre(0, 1));
  EXPECT_THAT(batch.weights, IsEmpty());
}

TEST(CsvSetTest, RecordsMayGoOverSeveralLines) {
  WriteTestFile("lines.csv", "a,y\n\"two\nlines\",1\n\"say \"\"hi\"\"\",0\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("csv { file: 'lines.csv' label { column: 'y' } }",
              absl::StrCat(kBinary,
                           "input { name: 'i' ids { column { name: 'a' hash {} "
                           "} } }")));
  EXPECT_THAT(
      batch.ids[0].ids,
      ElementsAre(Fingerprint().AddPart("a").AddPart("two\nlines").Get(),
                  Fingerprint().AddPart("a").AddPart("say \"hi\"").Get()));
}

TEST(CsvSetTest, LabelIsThePositionOfItsClass) {
  WriteTestFile("iris.csv", "1,setosa\n2,virginica\n");
  const std::string dataset =
      "csv { file: 'iris.csv' column: ['x', 'y'] label { column: 'y' "
      "class: ['setosa', 'versicolor', 'virginica'] } }";
  const std::string input = "input { name: 'x' dense { shape: 1 } }";
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(dataset, "loss { sparse_categorical_crossentropy {} } " + input));
  EXPECT_THAT(batch.labels, ElementsAre(0, 2));
  ASSERT_OK_AND_ASSIGN(
      const Batch one_hot,
      ReadAll(dataset,
              "loss { categorical_crossentropy {} } layer { dense { "
              "units: 3 } } " +
                  input));
  EXPECT_THAT(one_hot.labels, ElementsAre(1, 0, 0, 0, 0, 1));
}

TEST(CsvSetTest, BlanksAroundTheJobsTextsDoNotMatter) {
  WriteTestFile("blanks.csv", "x,y\n1, >50K\n ?, <=50K\n");
  const std::string dataset =
      "csv { file: 'blanks.csv' missing: ' ?' label { column: 'y' ";
  const std::string input =
      "input { name: 'x' dense { column { name: 'x' default_value: 7 } } } ";
  ASSERT_OK_AND_ASSIGN(
      const Batch binary,
      ReadAll(dataset + "positive: ' >50K' } }", kBinary + input));
  EXPECT_THAT(binary.labels, ElementsAre(1, 0));
  EXPECT_THAT(binary.dense[0].values, ElementsAre(1, 7));
  ASSERT_OK_AND_ASSIGN(
      const Batch classes,
      ReadAll(dataset + "class: [' <=50K', ' >50K'] } }",
              "loss { sparse_categorical_crossentropy {} } " + input));
  EXPECT_THAT(classes.labels, ElementsAre(1, 0));
}

TEST(CsvSetTest, AMissingLabelIsCorruptAndNotNegative) {
  for (const char* line : {"1,", "1,?"}) {
    WriteTestFile("unlabelled.csv", absl::StrCat("x,y\n", line, "\n"));
    EXPECT_THAT(
        ReadAll(
            "csv { file: 'unlabelled.csv' missing: '?' label { column: 'y' "
            "positive: 'yes' } }",
            absl::StrCat(kBinary, "input { name: 'x' dense { shape: 1 } }")),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr("line 2 at byte 4: the label is missing")));
  }
}

TEST(CsvSetTest, ReadsRatings) {
  WriteTestFile("ratings.dat.gz", Gzip("1::114508::8::1381006850\n"
                                       "2::208092::5::1586466072\n"));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("ratings { file: 'ratings.dat.gz' }",
              absl::StrCat(kSquared,
                           "input { name: 'user' ids { column { name: 'user' "
                           "hash {} } } } input { name: 'item' ids {} }")));
  EXPECT_THAT(batch.labels, ElementsAre(8, 5));
  EXPECT_THAT(batch.ids[0].ids.front(),
              Fingerprint().AddPart("user").AddPart("1").Get());
  EXPECT_THAT(batch.ids[1].ids, ElementsAre(114508, 208092));
}

TEST(CsvSetTest, ReadsCriteoWhoseFieldsMayBeEmpty) {
  std::string line = "1\t5";
  for (int i = 0; i < 12; ++i) line += "\t";
  for (int i = 0; i < 25; ++i) line += "\t68fd1e64";
  WriteTestFile("criteo", line + "\t\n" + "0" + std::string(39, '\t') + "\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(
          "criteo { file: 'criteo' }",
          absl::StrCat(kBinary,
                       "input { name: 'n' dense { column { name: 'I1' "
                       "default_value: -1 } } } input { name: 'c' ids { "
                       "column { name: 'C1' hash { buckets: 10 } } column { "
                       "name: 'C26' hash { buckets: 10 } } } }")));
  EXPECT_EQ(batch.size, 2);
  EXPECT_THAT(batch.dense[0].values, ElementsAre(5, -1));
  const uint64_t c1 =
      Fingerprint().AddPart("C1").AddPart("68fd1e64").Get() % 10;
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(c1, 21, 10, 21));
}

TEST(CsvSetTest, CorruptRecordsAreNamedOrLeftOut) {
  struct Case {
    std::string line;
    std::string want;
  };
  const Case cases[] = {
      {"1,2", "2 values, not 3"},
      {"1,2,3,4,5", "more values, not 3"},
      {"x,1,1", "column x: \"x\" is not a finite float32"},
      {"1e39,1,1", "column x: \"1e39\" is not a finite float32"},
      {",1,1", "column x: the value is missing"},
      {"1,nan,1", "label \"nan\" is not a finite number"},
      {"1,1,-1", "weight -1 is negative or beyond"},
      {"1,1,", "weight \"\" is not a finite number"},
      {"\"1\"2,1,1", "a quoted value does not end, or goes on"},
      {"\"1,1,1", "a quoted value does not end, or goes on"},
  };
  const std::string dataset =
      "csv { file: 'corrupt.csv' label { column: 'y' } weight_column: 'w' } ";
  const std::string model =
      absl::StrCat(kBinary, "input { name: 'x' dense { shape: 1 } }");
  for (const Case& c : cases) {
    SCOPED_TRACE(c.line);
    WriteTestFile("corrupt.csv", "x,y,w\n1,1,1\n" + c.line + "\n2,0,1\n");
    EXPECT_THAT(ReadAll(dataset, model),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("corrupt.csv line 3 at byte 12: "),
                               HasSubstr(c.want))));
    ASSERT_OK_AND_ASSIGN(const Batch rest,
                         ReadAll(dataset + "on_corrupt: SKIP", model));
    EXPECT_THAT(rest.dense[0].values, ElementsAre(1, 2));
    EXPECT_THAT(rest.labels, ElementsAre(1, 0));
    EXPECT_THAT(rest.weights, ElementsAre(1, 1));
  }
}

TEST(CsvSetTest, AHeaderThatIsNoListOfColumnsAsksForTheDelimiter) {
  WriteTestFile("header.csv", "\"a\"b,y\n1,1\n");
  EXPECT_THAT(ReadAll("csv { file: 'header.csv' label { column: 'y' } }",
                      absl::StrCat(kBinary,
                                   "input { name: 'x' dense { column { name: "
                                   "'a' } } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("header.csv: the header \"\\\"a\\\"b,y"),
                             HasSubstr("is csv.delimiter right?"))));
  WriteTestFile("semicolons.csv", "a;y\n1;1\n");
  EXPECT_THAT(ReadAll("csv { file: 'semicolons.csv' label { column: 'y' } }",
                      absl::StrCat(kBinary,
                                   "input { name: 'x' dense { column { name: "
                                   "'a;y' } } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no column \"y\", but only \"a;y\"; is "
                                 "csv.delimiter: \";\" meant?")));
  WriteTestFile("excel.csv",
                "\xff\xfe"
                "a");
  EXPECT_THAT(ReadAll("csv { file: 'excel.csv' label { column: 'y' } }",
                      absl::StrCat(kBinary, "input_shape: 1")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("excel.csv: is UTF-16; save it as UTF-8")));
}

TEST(CsvSetTest, WhatTheDataHasNotGotIsNamed) {
  WriteTestFile("set.csv", "a,b,y\n1,2,1\n");
  WriteTestFile("set_2.csv", "b,a,y\n1,2,1\n");
  const std::string label = " label { column: 'y' } ";
  const struct {
    std::string dataset;
    std::string input;
    std::string want;
  } cases[] = {
      {"file: 'set.csv'" + label, "dense { column { name: 'c' } }",
       "model input x: the data set has no column \"c\", but a, b, y"},
      {"file: 'set.csv'" + label, "dense { shape: 1 }",
       "model input x: names no column, and the data set has 2: a, b"},
      {"file: 'set.csv'" + label,
       "dense { shape: 3 column { name: 'a' } column { name: 'b' } }",
       "model input x: its shape [3] is not made of 2 columns"},
      {"file: 'set.csv'" + label,
       "ids { column { name: ['a', 'b'] identity {} } }",
       "only `hash` makes ids of several columns"},
      {"file: 'set.csv'" + label,
       "dense { column { name: 'a' default_value: 1e39 } }",
       "column a: default_value 1e+39 is beyond float32"},
      {"file: 'set.csv'", "dense { column { name: 'a' } }",
       "csv.label.column is not set"},
      {"file: 'set.csv' label { column: 'z' }",
       "dense { column { name: 'a' } }",
       "csv.label.column: the data set has no column \"z\", but a, b, y"},
      {"file: 'set.csv' weight_column: 'z'" + label,
       "dense { column { name: 'a' } }",
       "csv.weight_column: the data set has no column \"z\""},
      {"file: 'set*.csv'" + label, "dense { column { name: 'a' } }",
       "set_2.csv: the columns are b, a, y; those of the files before it"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        ReadAll("csv { " + c.dataset + " }",
                absl::StrCat(kBinary, "input { name: 'x' ", c.input, " }")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

constexpr char kLists[] = "csv { file: 'lists.csv' label { column: 'y' } }";

std::string Sequence(const std::string& fields) {
  return absl::StrCat(kBinary,
                      "input { name: 'x' ids { column { name: 'x' identity { "
                      "num_ids: 10 } } sequence { length: 3 ",
                      fields, " } } }");
}

TEST(CsvSetTest, AListIsTheTextsBetweenSeparators) {
  WriteTestFile("lists.csv",
                "x,y\n1|2,0\n,1\n 3 | 4|\t5 ,1\n6,0\n\"7|8\",0\n1|2|3|4,1\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll(kLists, Sequence("separator: '|'")));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4));
  EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 2, 2, 5, 6, 8, 11));
}

TEST(CsvSetTest, SeparatorsMayBeLongOrTheDelimiterWithinQuotes) {
  WriteTestFile("lists.csv", "x,y\n1::2,0\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll(kLists, Sequence("separator: '::'")));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 2));
  WriteTestFile("lists.csv", "x,y\n\"1,2\",0\n");
  ASSERT_OK_AND_ASSIGN(const Batch quoted,
                       ReadAll(kLists, Sequence("separator: ','")));
  EXPECT_THAT(quoted.ids[0].ids, ElementsAre(1, 2));
}

TEST(CsvSetTest, AnEmptyPlaceInAListIsAMissingValue) {
  WriteTestFile("lists.csv", "x,y\n|1|?,0\n?,1\n1||,1\n|,0\n");
  const std::string set =
      "csv { file: 'lists.csv' label { column: 'y' } missing: '?' }";
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll(set, Sequence("separator: '|'")));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(10, 1, 10, 1, 10, 10, 10, 10));
  EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 3, 3, 6, 8));
}

TEST(CsvSetTest, AListOfAMillionValuesIsCutAndAWrongOneNamed) {
  std::string list = "1";
  for (int i = 0; i < 1 << 20; ++i) list += "|2";
  WriteTestFile("lists.csv", absl::StrCat("x,y\n", list, "|3,0\n"));
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll(kLists, Sequence("separator: '|'")));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(2, 2, 3));
  WriteTestFile("lists.csv", "x,y\n1|2,0\n1|b|2,0\n");
  EXPECT_THAT(ReadAll(kLists, Sequence("separator: '|'")),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("lists.csv"), HasSubstr("line 3"),
                             HasSubstr("\"b\" is not the number of an id"))));
}

TEST(CsvSetTest, AColumnHasOneForm) {
  WriteTestFile("lists.csv", "x,y\n1|2,0\n");
  EXPECT_THAT(
      ReadAll(kLists,
              absl::StrCat(Sequence("separator: '|'"),
                           "input { name: 'z' ids { column { name: 'x' hash {} "
                           "} } }")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("input z: reads column \"x\" as single values, an "
                         "earlier input as lists with the separator \"|\"")));
}

TEST(CsvSetTest, AFileWithoutNamesIsNamedWithWhatLeavesThemOut) {
  WriteTestFile("names.csv", "a,y\n1,2\n");
  WriteTestFile("no_names.csv", "");
  const auto error = [](const std::string& fields) {
    return std::string(
        ReadAll(absl::StrCat("csv { ", fields, " label { column: 'y' } }"),
                absl::StrCat(kBinary,
                             "input { name: 'x' dense { column { name: 'a' } } "
                             "}"))
            .status()
            .message());
  };
  EXPECT_THAT(error("file: 'names.csv' skip_lines: 5000"),
              HasSubstr("names.csv: the file has no line of columns' "
                        "names behind the 5000 lines of csv.skip_lines"));
  EXPECT_THAT(
      error("file: 'no_names.csv'"),
      HasSubstr("no_names.csv: the file has no line of columns' names in it"));
}

TEST(CsvSetTest, LinesThatEndWithCarriageReturnsAloneAreRefused) {
  const auto error = [](const std::string& text) {
    WriteTestFile("returns.csv", text);
    return ReadAll("csv { file: 'returns.csv' label { column: 'y' } }",
                   absl::StrCat(kBinary,
                                "input { name: 'x' dense { column { name: 'a' "
                                "} } }"))
        .status();
  };
  EXPECT_THAT(error("a,y\r1,0\r2,1\r"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("returns.csv: has no line feeds: ")));
  EXPECT_OK(error("a,y\r\n1,0\r\n"));
}

}  // namespace
}  // namespace parasol
