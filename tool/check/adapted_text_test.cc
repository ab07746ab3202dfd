#include "tool/check/adapted_text.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "cluster/check/check_job_and_data.h"
#include "cluster/job/check_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What stands in the input's braces is the test's.
constexpr char kJob[] = R"(# Rent by rooms.
model {
  input { name: "rooms" dense {
    $0
  } }
  layer { dense { units: 1 } }
  loss { mean_squared_error {} }
}
train { csv { file: "rent.csv" label { column: "rent" } } batch_size: 2 }
optimizer { adam {} }
end { epochs: 1 }
)";

class AdaptedTextTest : public ::testing::Test {
 protected:
  AdaptedTextTest() { WriteData("x1,x2,same,rent\n1,-4,5,7\n3,4,5,8\n"); }

  void WriteData(const std::string& text) {
    std::ofstream(testing::TempDir() + "/rent.csv") << text;
  }

  static std::string Job(const std::string& columns) {
    return absl::StrReplaceAll(kJob, {{"$0", columns}});
  }

  // Checks the job of these columns, and fills in its means.
  std::string Adapted(const std::string& columns,
                      const std::vector<std::string>& overrides = {}) {
    const std::string path = testing::TempDir() + "/rent.textproto";
    std::ofstream(path) << Job(columns);
    absl::StatusOr<CheckedJob> job =
        CheckedJob::Read(path, overrides, testing::TempDir());
    EXPECT_OK(job);
    report_ = CheckJobAndData(*job, {.data_dir = testing::TempDir()});
    EXPECT_THAT(report_.faults, IsEmpty());
    left_out_.clear();
    return AdaptedText(*job, report_, left_out_);
  }

  JobReport report_;
  std::vector<std::string> left_out_;
};

TEST_F(AdaptedTextTest, APatternGivesItsPlaceToTheColumnsThatItStandsFor) {
  const std::string adapted =
      Adapted("column { name: \"x?\" default_value: 2 }  # Sizes.");
  EXPECT_EQ(adapted,
            Job("column { name: \"x1\" mean: 2 stddev: 1 default_value: 2 }\n"
                "    column { name: \"x2\" mean: 0 stddev: 4 default_value: 2 "
                "}  # Sizes."));
  EXPECT_THAT(left_out_, IsEmpty());
  const std::string row = report_.data_sets[0].rows[1];
  EXPECT_NE(row.find("rooms [3, 4]"), std::string::npos) << row;

  // The result is a job with nothing more to fill in.
  std::ofstream(testing::TempDir() + "/again.textproto") << adapted;
  absl::StatusOr<CheckedJob> job =
      CheckedJob::Read(testing::TempDir() + "/again.textproto", {});
  ASSERT_OK(job);
  EXPECT_THAT(job->faults(), IsEmpty());
  const JobReport again =
      CheckJobAndData(*job, {.data_dir = testing::TempDir()});
  EXPECT_THAT(again.patterns, IsEmpty());
  EXPECT_THAT(again.normalizations, IsEmpty());
  EXPECT_NE(again.data_sets[0].rows[1].find("rooms [1, 1]"), std::string::npos)
      << again.data_sets[0].rows[1];
}

TEST_F(AdaptedTextTest, ThePatternsCommentsStayWithItsFirstColumn) {
  EXPECT_EQ(Adapted("column {\n"
                    "      # What \"people\" ask for.\n"
                    "      name: 'x*'  # 'x' is the size\n"
                    "      mean: 0\n"
                    "    }\n"
                    "    # The rest.\n"
                    "    column { name: \"same\" }"),
            Job("column {\n"
                "      # What \"people\" ask for.\n"
                "      name: \"x1\" mean: 2 stddev: 1  # 'x' is the size\n"
                "      \n"
                "    }\n"
                "    column {\n"
                "      name: \"x2\" mean: 0 stddev: 4\n"
                "      \n"
                "    }\n"
                "    # The rest.\n"
                "    column { name: \"same\" }"));
}

TEST_F(AdaptedTextTest, AColumnOfOneValueHasAPlaceAndNoMean) {
  EXPECT_EQ(Adapted("column { name: \"*\" } # all"),
            Job("column { name: \"x1\" mean: 2 stddev: 1 }\n"
                "    column { name: \"x2\" mean: 0 stddev: 4 }\n"
                "    column { name: \"same\" } # all"));
}

TEST_F(AdaptedTextTest, APatternWithAMeanStaysAPattern) {
  const std::string columns =
      "column { name: \"x*\" mean: 1 } column { name: \"sam?\" }";
  EXPECT_EQ(Adapted(columns), Job(columns));
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(AdaptedTextTest, TheFieldsThatAColumnHasAlreadyAreReplaced) {
  EXPECT_EQ(Adapted("column { name: \"x1\" mean: 0 stddev: 1 }"),
            Job("column { name: \"x1\"   mean: 2 stddev: 1 }"));
}

TEST_F(AdaptedTextTest, ANameWithWildcardsIsWrittenAsAName) {
  WriteData("a*,ab,a\"\\,rent\n1,-4,1,7\n3,4,3,8\n");
  EXPECT_EQ(Adapted("column { name: \"a\\\\*\" }"),
            Job("column { name: \"a\\\\*\" mean: 2 stddev: 1 }"));
  EXPECT_EQ(Adapted("column { name: \"a?*\" }"),
            Job("column { name: \"a\\\\*\" mean: 2 stddev: 1 }\n"
                "    column { name: \"ab\" mean: 0 stddev: 4 }\n"
                "    column { name: \"a\\\"\\\\\" mean: 2 stddev: 1 }"));
}

TEST_F(AdaptedTextTest, ColumnsInAListInBracketsBecomeFields) {
  EXPECT_EQ(Adapted("column: [{ name: \"same\" }, { name: \"x1\" }]\n"
                    "    column { name: \"x2\" }"),
            Job(" column { name: \"same\" } column { name: \"x1\" mean: 2 "
                "stddev: 1 }\n"
                "    column { name: \"x2\" mean: 0 stddev: 4 }"));
  EXPECT_THAT(left_out_, IsEmpty());
  EXPECT_EQ(
      Adapted("column: [\n"
              "      < name: 'x1' default_value: 2 >,  # the [first]\n"
              "      < name: 'x2' mean: 1 >\n"
              "    ]"),
      Job(" \n"
          "      column < name: 'x1' default_value: 2 mean: 2 stddev: 1 > "
          " # the [first]\n"
          "      column < name: 'x2' mean: 1 >\n"
          "    "));
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(AdaptedTextTest, APatternInAListInBracketsBecomesFields) {
  EXPECT_EQ(Adapted("column: [{ name: \"x*\" }, { name: \"same\" }]"),
            Job(" column { name: \"x1\" mean: 2 stddev: 1 }\n"
                "     column { name: \"x2\" mean: 0 stddev: 4 } column { name: "
                "\"same\" }"));
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(AdaptedTextTest, AListThatNothingIsFilledInStays) {
  const std::string columns =
      "column: [{ name: \"same\" }, { name: \"same\" }]";
  EXPECT_EQ(Adapted(columns), Job(columns));
}

TEST_F(AdaptedTextTest, WhatComesFromTheCommandLineIsLeftOut) {
  const std::string columns = "column { name: \"x1\" }";
  EXPECT_EQ(Adapted(columns, {"model.input[0].dense.column[0].name=x*"}),
            Job(columns));
  EXPECT_THAT(
      left_out_,
      ElementsAre("x1 of the pattern x*, model.input[0].dense.column[0]",
                  "x2 of the pattern x*, "
                  "model.input[0].dense.column[0]"));
}

// Ids of which the vocabularies are filled in.
TEST(AdaptedVocabulariesTest, HashesAreReplacedAndVocabulariesCompleted) {
  const std::string path = testing::TempDir() + "/cities.textproto";
  std::ofstream(testing::TempDir() + "/cities.csv")
      << "city,plan,y\nOslo,a,1\n\"say \"\"hi\"\"\",b,2\nOslo,c,3\n";
  std::ofstream(path) << R"(model {
  input { name: "ids" ids {
    column { name: "city" hash {} missing: NO_ID }  # where
    column { name: "plan" vocabulary { value: "b" out_of_vocabulary: 2 } }
    column { name: ["city", "plan"] hash { buckets: 9 } }
  } }
  layer { embedding_bag { table: "t" } }
  layer { dense { units: 1 } }
  loss { mean_squared_error {} }
  sparse_table { name: "t" width: 2 }
}
train { csv { file: "cities.csv" label { column: "y" } } batch_size: 2 }
optimizer { adam {} }
end { epochs: 1 }
)";
  ASSERT_OK_AND_ASSIGN(CheckedJob job,
                       CheckedJob::Read(path, {}, testing::TempDir()));
  const JobReport report =
      CheckJobAndData(job, {.data_dir = testing::TempDir()});
  EXPECT_THAT(report.faults, IsEmpty());
  std::vector<std::string> left_out;
  const std::string adapted = AdaptedText(job, report, left_out);
  EXPECT_THAT(left_out, IsEmpty());
  EXPECT_THAT(
      adapted,
      testing::HasSubstr(
          "    column { name: \"city\" vocabulary { value: [\"Oslo\", \"say "
          "\\\"hi\\\"\"] } missing: NO_ID }  # where\n"
          "    column { name: \"plan\" vocabulary { value: \"b\" "
          "out_of_vocabulary: 2 value: [\"a\", \"c\"] } }\n"
          "    column { name: [\"city\", \"plan\"] hash { buckets: 9 } }\n"));
}

}  // namespace
}  // namespace parasol
