#include "cluster/check/start_check.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kJob[] = R"(
model {
  input { name: "a" dense { column { name: "a" } } }
  layer { dense { units: 1 } }
  loss { binary_crossentropy {} }
}
train { csv { file: "start*.csv" label { column: "y" positive: "Yes" } } }
optimizer { sgd { learning_rate: 1 } }
end { steps: 3 }
)";

class StartCheckTest : public ::testing::Test {
 protected:
  StartCheckTest() : directory_(testing::TempDir() + "/start") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ + "/data");
    std::ofstream(directory_ + "/job") << kJob;
    Write("start.csv", "a,y\n1,yes\n2,no\n");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/data/" + name) << text;
  }

  StartReport Check(CheckOptions options = {}) {
    options.data_dir = directory_ + "/data";
    StartReport report;
    auto loaded = CheckStart({.path = directory_ + "/job",
                              .options = options,
                              .checkpoint_directory = directory_ + "/ckpt"},
                             report);
    EXPECT_OK(loaded);
    EXPECT_EQ(loaded->has_value(), report.faults.empty());
    return report;
  }

  const std::string directory_;
};

TEST_F(StartCheckTest, ALabelThatNeverOccursIsSaid) {
  const StartReport report = Check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(report.samples, IsEmpty());
  EXPECT_THAT(report.warnings,
              Contains(HasSubstr("\"Yes\" is never seen in column \"y\"")));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("did you mean \"yes\"?")));
}

TEST_F(StartCheckTest, LargeDataAreASampleWhichIsSaid) {
  std::string rows = "a,y\n";
  while (rows.size() < (5 << 20)) absl::StrAppend(&rows, rows.size(), ",Yes\n");
  for (int i = 0; i < 8; ++i) Write(absl::StrCat("start", i, ".csv"), rows);
  Write("start.csv", "a,y\n1,Yes\n2,no\n");
  const StartReport report = Check();
  EXPECT_THAT(report.faults, IsEmpty());
  ASSERT_THAT(report.samples, SizeIs(1));
  EXPECT_THAT(report.samples[0],
              HasSubstr("train: a sample of 51200 examples was checked"));
  // The first file has the rare class.
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST_F(StartCheckTest, WhatAJobHasTrainedWithIsNoReasonToRefuseIt) {
  Write("start.csv", "a,a,y\n1,1,Yes\n2,1,no\n");
  EXPECT_THAT(Check().faults,
              ElementsAre(HasSubstr("the data have 2 columns \"a\"")));
  std::filesystem::create_directories(directory_ + "/ckpt/ckpt-000000000000");
  EXPECT_THAT(Check().faults, SizeIs(1));
  std::filesystem::create_directories(directory_ + "/ckpt/ckpt-000000000010");
  const StartReport report = Check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(report.warnings, Contains(HasSubstr("2 columns \"a\"")));
}

TEST_F(StartCheckTest, WithoutDataTheJobAloneIsChecked) {
  StartReport report;
  ASSERT_OK(CheckStart({.path = directory_ + "/job"}, report));
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST_F(StartCheckTest, WhoeverTrainsItIsAsked) {
  const auto refuse = [](std::optional<size_t> variables, job::Job&) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy: not with ", variables.value_or(0)));
  };
  EXPECT_THAT(Check({.fit = refuse}).faults,
              ElementsAre(HasSubstr("strategy: not with 2")));
}

TEST_F(StartCheckTest, AClusterWithoutPsIsNoFaultOfItself) {
  EXPECT_THAT(Check({.workers = 2, .ps = 0}).faults, IsEmpty());
}

TEST_F(StartCheckTest, CodeThatOthersHaveIsLeftToThem) {
  std::string text = kJob;
  const std::string loss = "binary_crossentropy {}";
  text.replace(text.find(loss), loss.size(), "custom { type: \"mine\" }");
  std::ofstream(directory_ + "/job") << text;
  EXPECT_THAT(Check().faults, Not(IsEmpty()));
  EXPECT_THAT(Check({.code_is_elsewhere = true}).faults, IsEmpty());
}

TEST_F(StartCheckTest, TheLastFaultIsReturned) {
  Write("start.csv", "b,z\n1,yes\n");
  const auto loaded =
      LoadCheckedJob({.path = directory_ + "/job",
                      .options = {.data_dir = directory_ + "/data"}},
                     [](const std::string&, bool) {});
  EXPECT_THAT(loaded, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("no column \"y\"")));
}

}  // namespace
}  // namespace parasol
