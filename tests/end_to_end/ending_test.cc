// Whole clusters of real processes that lose a task at the end of the job,
// can't write their last checkpoint, or are told to stop.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSynchronous[] =
    "parameter_server.synchronous.lost_worker=REASSIGN";

LaunchedCluster::Options ShortJob() {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=4000", "checkpoint.every_steps=500"};
  // It would not bear a file in the place of the checkpoints.
  options.flags = {"--evaluator=false"};
  return options;
}

// Keeps a cluster from writing checkpoints, also as root: a file is where their
// directory is.
class ClosedDirectory {
 public:
  explicit ClosedDirectory(const std::string& directory)
      : directory_(directory), aside_(directory + "-aside") {
    fs::rename(directory_, aside_);
    std::ofstream(directory_) << "not a directory";
  }
  ~ClosedDirectory() { Open(); }

  void Open() {
    if (!fs::exists(aside_)) return;
    fs::remove(directory_);
    fs::rename(aside_, directory_);
  }

 private:
  const std::string directory_;
  const std::string aside_;
};

absl::Status AwaitTrouble(LaunchedCluster& cluster) {
  return WaitUntil("a last checkpoint that can't be written", [&] {
    const auto status = cluster.Status();
    return status.ok() && status->phase() == wire::FINISHING &&
           !status->trouble().empty();
  });
}

struct Loss {
  std::string name;
  std::string task;
  std::string override;
};

class LossAtTheEndTest : public testing::TestWithParam<Loss> {};

INSTANTIATE_TEST_SUITE_P(
    Tasks, LossAtTheEndTest,
    testing::Values(Loss{"ps", "ps/1", "seed=7"},
                    Loss{"chief", "chief/0", "seed=7"},
                    Loss{"synchronous_ps", "ps/1", kSynchronous},
                    Loss{"synchronous_chief", "chief/0", kSynchronous},
                    Loss{"chief_of_epochs", "chief/0", "end.epochs=32"}),
    [](const auto& info) { return info.param.name; });

// The last checkpoint is held up; the task is killed in the moment in which it
// can be written.
TEST_P(LossAtTheEndTest, TheJobIsCompleteAllTheSame) {
  LaunchedCluster::Options options = ShortJob();
  options.overrides.push_back(GetParam().override);
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  ClosedDirectory closed(cluster->checkpoint_dir());
  ASSERT_OK(AwaitTrouble(*cluster));
  closed.Open();
  ASSERT_OK(cluster->Signal(GetParam().task, SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result,
                       cluster->Wait(/*limit=*/absl::Minutes(2)));
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_GE(json["global_step"].get<int64_t>(), 4000);
}

TEST(LastCheckpointTest, OneThatCantBeWrittenIsNamedAndEndsTheJob) {
  LaunchedCluster::Options options = ShortJob();
  options.flags.push_back("--checkpoint_timeout=8s");
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  const ClosedDirectory closed(cluster->checkpoint_dir());
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(result.exit_code, 2) << result.progress;
  EXPECT_THAT(result.progress,
              HasSubstr("finishing: no checkpoint of step 4000 in "));
  EXPECT_THAT(result.json, AllOf(HasSubstr("no checkpoint of step 4000 could"),
                                 HasSubstr(cluster->checkpoint_dir())));
}

TEST(LeavingPsTest, APsThatIsToldToStopLeavesWithACheckpoint) {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=4000", "checkpoint.every_steps=1000000"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(600));
  const auto before = cluster->Tasks();
  ASSERT_OK(cluster->Signal("ps/1", SIGTERM));
  ASSERT_OK(WaitUntil("a new ps/1", [&] {
    const auto now = cluster->Tasks();
    return now.count("ps/1") && now.at("ps/1") != before.at("ps/1");
  }));
  EXPECT_THAT(cluster->LogOf("ps/1"),
              HasSubstr("leaving: the checkpoint is complete"));
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       CheckpointStore(cluster->checkpoint_dir()).ListSteps());
  EXPECT_GE(steps.back(), 600);
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(result.exit_code, 0) << result.progress;
}

}  // namespace
}  // namespace parasol
