// First jobs of tables of many kinds: each passes a check with its data.

#include "tool/first_job/first_job.h"

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/check/check_job_and_data.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "cluster/job/check_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kLines = 60;

class FirstJobTest : public ::testing::Test {
 protected:
  FirstJobTest() : directory_(EmptyTestDirectory()) {}

  // Writes a table: a header, and lines by their numbers.
  void Write(const std::string& header,
             const std::function<std::string(int)>& line) {
    std::ofstream file(directory_ + "/t.csv");
    file << header;
    for (int i = 0; i < kLines; ++i) file << line(i) << "\n";
  }

  absl::StatusOr<std::string> Job(const std::string& label,
                                  FirstTask task = FirstTask::kGuess) {
    ASSIGN_OR_RETURN(const TableSurvey survey,
                     SurveyTable(directory_ + "/t.csv", 1000));
    ASSIGN_OR_RETURN(const FirstJob job, MakeFirstJob(survey, {.name = "t",
                                                               .file = "t.csv",
                                                               .label = label,
                                                               .task = task}));
    return job.text;
  }

  // The job, which has no fault and of which the check warns of nothing.
  std::string GoodJob(const std::string& label) {
    const auto text = Job(label);
    EXPECT_OK(text);
    if (!text.ok()) return "";
    const std::string path = directory_ + "/t.textproto";
    std::ofstream(path) << *text;
    auto checked = CheckedJob::Read(path, {}, directory_);
    EXPECT_OK(checked);
    const JobReport report =
        CheckJobAndData(*checked, {.data_dir = directory_});
    EXPECT_THAT(report.faults, IsEmpty()) << *text;
    EXPECT_THAT(report.warnings, IsEmpty()) << *text;
    EXPECT_THAT(report.normalizations, IsEmpty()) << *text;
    return *text;
  }

  const std::string directory_;
};

TEST_F(FirstJobTest, NumbersTextsAndALabelOfTwoTexts) {
  Write("age,plan,left\n", [](int i) {
    return absl::StrCat(20 + i * 7 % 50, ",", i % 3 == 0 ? "pro" : "basic", ",",
                        i % 4 == 0 ? "yes" : "no");
  });
  EXPECT_THAT(
      GoodJob("left"),
      AllOf(HasSubstr("column { name: \"age\" mean: "),
            HasSubstr("column { name: \"plan\" vocabulary { value: [\"basic\", "
                      "\"pro\"] } }"),
            HasSubstr("label { column: \"left\" class: [\"no\", \"yes\"] }"),
            HasSubstr("binary_crossentropy"), HasSubstr("keep_best"),
            HasSubstr("early_stopping")));
}

TEST_F(FirstJobTest, WhatIsOfNoUseIsLeftOutWithTheReason) {
  Write(",when,one,id,name,x,y\n", [](int i) {
    return absl::StrCat(i, ",2024-01-", 10 + i % 20, ",1,", i * 13 % 97, ",n",
                        i, ",", i % 7, ",", i % 3 == 0 ? "a" : "b");
  });
  EXPECT_THAT(
      GoodJob("y"),
      AllOf(
          HasSubstr("# Left out: column 1 has no name, as a table's index.\n"),
          HasSubstr("# Left out: when has dates: "),
          HasSubstr("# Left out: one has one value only.\n"),
          HasSubstr("# Left out: id names the lines: "),
          HasSubstr("# Left out: name has another text in nearly every "
                    "line.\n"),
          HasSubstr("column { name: \"x\" mean: "),
          Not(HasSubstr("input: \"all\""))));
}

TEST_F(FirstJobTest, TabsOddNamesAndMissingValues) {
  Write("Größe (m²)\t\"a \"\"b\"\", c\"\tx*\tNA rate\ty\n", [](int i) {
    return absl::StrCat(i % 9 == 0 ? "" : absl::StrCat(i % 11), "\t",
                        i % 5 == 0 ? "\"u\tv\"" : "w", "\t", i % 6, "\t",
                        i % 8 == 0 ? "NA" : absl::StrCat(i % 10, ".5"), "\t",
                        i % 2 == 0 ? "1" : "0");
  });
  EXPECT_THAT(
      GoodJob("y"),
      AllOf(HasSubstr("delimiter: \"\\t\""), HasSubstr("missing: [\"NA\"]"),
            HasSubstr("\"Größe (m²)\" default_value: "),
            HasSubstr("\"a \\\"b\\\", c\" vocabulary"), HasSubstr("x\\\\*"),
            Not(HasSubstr("class:"))));
}

TEST_F(FirstJobTest, AFileWithoutNamesHasNumberedColumns) {
  Write("", [](int i) {
    return absl::StrCat(i % 5, ";", i % 7, ";", "kind ", i % 3);
  });
  EXPECT_THAT(GoodJob("c3"),
              AllOf(HasSubstr("column: [\"c1\", \"c2\", \"c3\"]"),
                    HasSubstr("delimiter: \";\""), HasSubstr("units: 3 }"),
                    HasSubstr("sparse_categorical_crossentropy")));
}

TEST_F(FirstJobTest, NumbersArePredictedInTheirUnit) {
  Write("rooms,price\n", [](int i) {
    return absl::StrCat(1 + i % 6, ",", 100'000.5 + i * 1000);
  });
  EXPECT_THAT(GoodJob("price"),
              AllOf(HasSubstr("mean_squared_error"), HasSubstr("r_squared"),
                    HasSubstr("bias_initializer { constant { value: 129500"),
                    HasSubstr("learning_rate_multiplier: 17318")));
}

TEST_F(FirstJobTest, LabelsThatAreMissingAreSkipped) {
  Write("x,y\n", [](int i) {
    return absl::StrCat(i % 6, ",", i % 10 == 0 ? "" : absl::StrCat(1 + i % 3));
  });
  EXPECT_THAT(GoodJob("y"), AllOf(HasSubstr("on_corrupt: SKIP"),
                                  HasSubstr("class: [\"1\", \"2\", \"3\"]")));
}

TEST_F(FirstJobTest, LabelsThatDifferInTheirCaseAreNoted) {
  Write("x,y\n", [](int i) {
    return absl::StrCat(i % 7, ",",
                        i % 3 == 0   ? "Yes"
                        : i % 3 == 1 ? "yes"
                                     : "no");
  });
  EXPECT_THAT(GoodJob("y"), HasSubstr("# Note: the labels \"Yes\" and \"yes\" "
                                      "differ in upper and lower case alone"));
}

TEST_F(FirstJobTest, OnlyNumbersInTheOrderOfTheLinesCountThem) {
  Write("a,b,y\n", [](int i) {
    return absl::StrCat(i + 5, ",", i * 7 % kLines, ",", i % 2);
  });
  EXPECT_THAT(GoodJob("y"),
              AllOf(HasSubstr("# Left out: a counts the lines.\n"),
                    HasSubstr("column { name: \"b\" mean: ")));
}

// Different texts that are one float64: ids of 64 bits, of more, and two
// neighbours at 2^53.
TEST_F(FirstJobTest, IntegersThatFloat64RoundsAreIds) {
  Write("item,user,big,near,y\n", [](int i) {
    return absl::StrCat(1234567890123456000 + i % 20, ",",
                        18446744073709551615u - i % 20, ",",
                        "123456789012345678901234", 10 + i % 20, ",",
                        9007199254740992 + i % 2, ",", i % 3 == 0 ? "a" : "b");
  });
  EXPECT_THAT(GoodJob("y"),
              AllOf(HasSubstr("column { name: \"item\" vocabulary "),
                    HasSubstr("column { name: \"user\" vocabulary "),
                    HasSubstr("column { name: \"big\" vocabulary "),
                    HasSubstr("column { name: \"near\" vocabulary "),
                    Not(HasSubstr("Left out"))));
}

TEST_F(FirstJobTest, IntegersThatFloat64RoundsNameLinesAndAreNoLabels) {
  Write("line,x,y\n", [](int i) {
    return absl::StrCat(9007199254740992 + i, ",", i % 7, ",",
                        1234567890123456000 + i % 50);
  });
  EXPECT_THAT(
      Job("x"),
      IsOkAndHolds(HasSubstr("# Left out: line names the lines: each has")));
  EXPECT_THAT(Job("y", FirstTask::kRegression).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("y: the column has numbers that float64 does "
                                 "not tell apart")));
}

TEST_F(FirstJobTest, OfFewLinesAllTrain) {
  std::ofstream(directory_ + "/t.csv")
      << "x,y\n1,a\n2,b\n3,a\n4,b\n5.5,a\n6,b\n";
  EXPECT_THAT(GoodJob("y"),
              AllOf(HasSubstr("batch_size: 2\n"), Not(HasSubstr("split")),
                    HasSubstr("# Too few lines to leave some out"),
                    Not(HasSubstr("early_stopping"))));
}

TEST_F(FirstJobTest, FaultsNameTheColumnAndWhatMayBeMeant) {
  Write("name,x,x,y,z\n", [](int i) {
    return absl::StrCat("n", i, ",", i, ",", i, ",", i % 2, ",same");
  });
  const auto error = [this](const std::string& label,
                            FirstTask task = FirstTask::kGuess) {
    return std::string(Job(label, task).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("--label is missing"));
  EXPECT_THAT(error("naem"), HasSubstr("did you mean \"name\"?"));
  EXPECT_THAT(error("x"), HasSubstr("2 columns have this name"));
  EXPECT_THAT(error("z"), HasSubstr("one value only, \"same\""));
  EXPECT_THAT(error("name"), HasSubstr("too many for classes"));
  EXPECT_THAT(error("name", FirstTask::kRegression),
              HasSubstr("needs numbers"));
  EXPECT_THAT(error("y"), HasSubstr("no column but the label is of use"));
  std::ofstream(directory_ + "/t.csv") << "";
  EXPECT_THAT(Job("y").status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FirstJobTest, ATableOfWhichNoLineCanBeReadSaysWhy) {
  Write("a,b,y\n", [](int i) { return absl::StrCat(i, ",1,2,3"); });
  EXPECT_THAT(Job("y").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("t.csv: has no line that can be read; "),
                             HasSubstr("more values, not 3"))));
  std::ofstream(directory_ + "/t.csv") << "a,b\n";
  EXPECT_THAT(Job("b").status().message(),
              HasSubstr("no line that can be read but the first, of names"));
  std::ofstream(directory_ + "/t.csv") << "a,b\r1,2\r3,4\r";
  EXPECT_THAT(Job("b").status().message(), HasSubstr("has no line feeds"));
}

TEST(TableSurveyTest, TheDelimiterSplitsAllLinesAlike) {
  EXPECT_EQ(DelimiterOf("a,b\n\"1;2\",3\n"), ",");
  EXPECT_EQ(DelimiterOf("a;b;c\n1,5;2;3\n1,5;2;3\n"), ";");
  EXPECT_EQ(DelimiterOf("a|b\n1|2"), "|");
  EXPECT_EQ(DelimiterOf("only\n1\n"), ",");
}

TEST(TableSurveyTest, DatesAreThreeNumbers) {
  for (const char* date : {"2024-03-01", "1.3.2024", "03/01/24",
                           "2024-03-01T10:00:00Z", "1.3.24 10:15"}) {
    EXPECT_TRUE(IsDate(date)) << date;
  }
  for (const char* text : {"", "10.0.0.1", "1.5", "a-b-c", "192-168", "1-2"}) {
    EXPECT_FALSE(IsDate(text)) << text;
  }
}

}  // namespace
}  // namespace parasol
