#include "worker/opened_job.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status PassesCheck(const Graph&) { return absl::OkStatus(); }

class OpenedJobTest : public testing::Test {
 protected:
  OpenedJobTest()
      : directory_(absl::StrCat(
            testing::TempDir(), "/opened_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/a.csv") << "x,y\n1,2\n2,4\n3,6\n";
    std::ofstream(directory_ + "/b.csv") << "x,y\n4,8\n";
    job_ = *ParseJob(R"pb(
                       name: "line"
                       model {
                         input {
                           name: "x"
                           dense { column { name: "x" } }
                         }
                         layer { dense { units: 1 } }
                         loss { mean_squared_error {} }
                       }
                       train {
                         csv {
                           file: "*.csv"
                           label { column: "y" }
                         }
                         batch_size: 2
                       }
                       end { epochs: 2 }
                     )pb",
                     "job");
    FillDefaults(job_);
  }

  OpenedJob::Options Options() const {
    return {.data_dir = directory_, .device = "cpu", .workers = 2};
  }

  const std::string directory_;
  job::Job job_;
  OpenedJob opened_;
};

TEST_F(OpenedJobTest, WorkersOfTheirOwnStepsReadOneShardOrTheirFiles) {
  EXPECT_EQ(CountInputShards(job_, /*is_in_step=*/false, /*workers=*/5), 1);
  job_.mutable_train()->set_auto_shard(job::Dataset::FILE);
  EXPECT_EQ(CountInputShards(job_, /*is_in_step=*/false, /*workers=*/5), 5);
  job_.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(3);
  EXPECT_EQ(CountInputShards(job_, /*is_in_step=*/true, /*workers=*/5), 3);
}

TEST_F(OpenedJobTest, HasTheDataAndTheEpochsOfTheJob) {
  ASSERT_OK(opened_.Open(job_, Options(), PassesCheck));
  EXPECT_TRUE(opened_.has_data());
  EXPECT_EQ(opened_.input().total_examples(), 4);
  EXPECT_THAT(opened_.shard_examples(), ElementsAre(4));
  EXPECT_EQ(opened_.points().steps_per_epoch(), 2);
  EXPECT_EQ(opened_.devices().size(), 1);
}

TEST_F(OpenedJobTest, NothingIsOpenedThatTheCheckRefuses) {
  EXPECT_THAT(opened_.Open(job_, Options(),
                           [](const Graph& graph) {
                             return absl::InvalidArgumentError(absl::StrCat(
                                 graph.variables.size(), " variables"));
                           }),
              StatusIs(absl::StatusCode::kInvalidArgument, "2 variables"));
  EXPECT_FALSE(opened_.has_data());
}

TEST_F(OpenedJobTest, AFileThatIsNotThereIsNamedBeforeThereAreData) {
  job_.mutable_train()->mutable_csv()->set_file(0, "none.csv");
  EXPECT_THAT(opened_.Open(job_, Options(), PassesCheck),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv")));
  EXPECT_FALSE(opened_.has_data());
}

TEST_F(OpenedJobTest, ASetThatGrowsNeedsItsFolderAlone) {
  job_.mutable_train()->set_follow(true);
  job_.mutable_train()->mutable_csv()->set_file(0, "none/*.csv");
  EXPECT_THAT(opened_.Open(job_, Options(), PassesCheck),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/none")));
  EXPECT_FALSE(opened_.has_data());
  job_.mutable_train()->mutable_csv()->set_file(0, "none*.csv");
  OpenedJob opened;
  EXPECT_OK(opened.Open(job_, Options(), PassesCheck));
  EXPECT_TRUE(opened.has_data());
}

}  // namespace
}  // namespace parasol
