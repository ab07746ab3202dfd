// Whole clusters of real processes whose tasks are killed and stopped.

#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

// Long enough that a task can be killed in the middle of it.
LaunchedCluster::Options LongJob() {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=4000", "checkpoint.every_steps=500"};
  return options;
}

void ExpectLearned(const LaunchedCluster::Result& result, int64_t steps) {
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_GE(json["global_step"].get<int64_t>(), steps);
  EXPECT_GT(json["eval"]["accuracy"].get<double>(), 0.8);
}

class RecoveryTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Tasks, RecoveryTest,
                         testing::Values("worker/1", "ps/0", "ps/1", "chief/0"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name.replace(name.find('/'), 1, "_");
                           return name;
                         });

TEST_P(RecoveryTest, AKilledTaskIsReplacedAndTheOthersGoOn) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(LongJob()));
  ASSERT_OK(cluster->AwaitStep(600));
  const auto before = cluster->Tasks();

  ASSERT_OK(cluster->Signal(GetParam(), SIGKILL));

  ASSERT_OK(WaitUntil("a new " + GetParam(), [&] {
    const auto now = cluster->Tasks();
    return now.count(GetParam()) && now.at(GetParam()) != before.at(GetParam());
  }));
  for (const auto& [task, pid] : cluster->Tasks()) {
    if (task != GetParam()) {
      EXPECT_EQ(pid, before.at(task)) << task;
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 4000);
}

TEST(StoppedTaskTest, AWorkerThatStandsStillDoesNotHoldUpTheJob) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(LongJob()));
  ASSERT_OK(cluster->AwaitStep(600));
  ASSERT_OK(cluster->Signal("worker/0", SIGSTOP));
  // Only the other worker is left to do these.
  ASSERT_OK(cluster->AwaitStep(2500));
  ASSERT_OK(cluster->Signal("worker/0", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 4000);
}

TEST(StoppedTaskTest, AWorkerThatStandsStillPastTheEndIsStillTold) {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=3000"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  ASSERT_OK(cluster->Signal("worker/0", SIGSTOP));
  // The other worker does the rest, also the steps of the stopped one.
  ASSERT_OK(WaitUntil("the end", [&] {
    const auto status = cluster->Status();
    return status.ok() && status->phase() == wire::COMPLETE;
  }));
  ASSERT_OK(cluster->Signal("worker/0", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 3000);
  EXPECT_THAT(result.progress, testing::Not(testing::HasSubstr("killing")));
}

TEST(StoppedTaskTest, WorkersWaitForAPsThatStandsStill) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(LongJob()));
  ASSERT_OK(cluster->AwaitStep(600));
  ASSERT_OK(cluster->Signal("ps/1", SIGSTOP));
  // Longer than the ps's lease: the chief has noticed.
  ASSERT_OK(WaitUntil("ps/1 missing", [&] {
    const auto status = cluster->Status();
    return status.ok() && status->missing_task_size() == 1 &&
           status->missing_task(0) == "ps/1";
  }));
  ASSERT_OK(cluster->Signal("ps/1", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 4000);
}

// Returns how often `log` has `text`.
int CountOf(absl::string_view text, absl::string_view log) {
  int count = 0;
  for (size_t at = log.find(text); at != absl::string_view::npos;
       at = log.find(text, at + 1)) {
    ++count;
  }
  return count;
}

TEST(StandbyTest, KilledPsGoOnFromTheirStandbysAndLoseNothing) {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=6000", "checkpoint.every_steps=100000",
                       "parameter_server.durability=REPLICATE"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  const std::vector<std::string> ps = {"ps/0", "ps/1"};
  for (size_t i = 0; i < ps.size(); ++i) {
    // Each has made its standby anew since the last loss.
    ASSERT_OK(WaitUntil("standbys in sync", [&] {
      return std::all_of(ps.begin(), ps.end(), [&](const std::string& task) {
        return CountOf("is in sync", cluster->LogOf(task)) >
               static_cast<int>(i);
      });
    }));
    ASSERT_OK(cluster->AwaitStep(1000 * static_cast<int64_t>(i + 1)));
    ASSERT_OK(cluster->Signal(ps[i], SIGKILL));
    // The other one acts for it, unless it was started again before.
    ASSERT_OK(WaitUntil(ps[i] + " restored", [&] {
      int restored = 0;
      for (const std::string& task : ps) {
        restored += CountOf("from its standby on ", cluster->LogOf(task));
      }
      return restored == static_cast<int>(i) + 1;
    }));
  }
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 6000);
  for (const std::string& task : ps) {
    EXPECT_EQ(CountOf("are lost", cluster->LogOf(task)), 0) << task;
  }
}

TEST(StandbyTest, AClusterWithOnePsIsToldWhatItNeeds) {
  LaunchedCluster::Options options;
  options.num_ps = 1;
  options.overrides = {"parameter_server.durability=REPLICATE"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.progress,
              testing::HasSubstr("the cluster has 1; add a ps"));
}

TEST(ResumeTest, ASecondLaunchGoesOnFromTheCheckpoint) {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=200"};
  ASSERT_OK_AND_ASSIGN(auto first, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto stopped, first->Wait());
  ASSERT_EQ(stopped.exit_code, 0) << stopped.progress;

  options.checkpoint_dir = first->checkpoint_dir();
  options.overrides = {"end.steps=700"};
  options.num_ps = 1;  // checkpoints do not depend on the number of shards
  ASSERT_OK_AND_ASSIGN(auto second, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, second->Wait());
  ExpectLearned(result, 700);
}

TEST(InterruptTest, CtrlCDrainsAndLeavesNothingRunning) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(LongJob()));
  ASSERT_OK(cluster->AwaitStep(600));
  const auto tasks = cluster->Tasks();
  ASSERT_EQ(tasks.size(), 6u);

  cluster->SignalLauncher(SIGINT);

  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(nlohmann::json::parse(result.json)["status"], "interrupted");
  for (const auto& [task, pid] : tasks) {
    EXPECT_NE(kill(pid, 0), 0) << task << " still runs as " << pid;
  }
}

}  // namespace
}  // namespace parasol
