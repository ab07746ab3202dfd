// Jobs under hybrid as processes, started by the launcher: killed, stopped,
// refused.

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/ratings.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

LaunchedCluster::Options Ratings(int64_t steps) {
  LaunchedCluster::Options options;
  options.job = RatingsJob(steps).DebugString();
  options.data_dir = RatingsDirectory();
  return options;
}

LaunchedCluster::Options Hybrid(int64_t steps) {
  LaunchedCluster::Options options = Ratings(steps);
  options.flags = {"--strategy=hybrid"};
  return options;
}

Trained TrainedIn(const LaunchedCluster& cluster, int64_t step) {
  const CheckpointStore store(cluster.checkpoint_dir());
  auto reader = CheckpointReader::Open(store.PathOf(step));
  EXPECT_OK(reader);
  return reader.ok() ? ReadTrained(**reader) : Trained();
}

void ExpectDone(const LaunchedCluster::Result& result, int64_t steps) {
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_EQ(json["global_step"], steps);
  // A coin's is .693.
  EXPECT_LT(json["eval"]["loss"].get<double>(), .25) << result.json;
}

// Kills a task and waits until another process has its place.
void Kill(LaunchedCluster& cluster, const std::string& task) {
  const auto before = cluster.Tasks();
  ASSERT_TRUE(before.contains(task)) << task;
  ASSERT_OK(cluster.Signal(task, SIGKILL));
  ASSERT_OK(WaitUntil(absl::StrCat("a new ", task), [&] {
    const auto now = cluster.Tasks();
    return now.contains(task) && now.at(task) != before.at(task);
  }));
}

// Waits until `steps` more steps are done.
void AwaitSteps(LaunchedCluster& cluster, int64_t steps) {
  int64_t now = -1;
  ASSERT_OK(WaitUntil("an answer of the chief", [&] {
    const auto status = cluster.Status();
    if (status.ok()) now = status->global_step();
    return status.ok();
  }));
  ASSERT_OK(cluster.AwaitStep(now + steps));
}

TEST(HybridWorkersTest, LossesOfWorkersAndChiefChangeNoBit) {
  constexpr int64_t kSteps = 3000;
  // Adam moves all rows: a replica that is computed again may read others.
  const std::string lazy = "optimizer.lazy_adam.learning_rate=0.01";
  LaunchedCluster::Options servers = Ratings(kSteps);
  servers.overrides = {"parameter_server.synchronous={}", lazy};
  ASSERT_OK_AND_ASSIGN(auto calm, LaunchedCluster::Start(servers));
  ASSERT_OK_AND_ASSIGN(const auto undisturbed, calm->Wait());
  ExpectDone(undisturbed, kSteps);

  LaunchedCluster::Options hybrid = Hybrid(kSteps);
  hybrid.overrides = {lazy};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(hybrid));
  ASSERT_OK(cluster->AwaitStep(300));
  for (const std::string task : {"worker/1", "worker/0", "chief/0"}) {
    SCOPED_TRACE(task);
    const auto before = cluster->Tasks();
    Kill(*cluster, task);
    AwaitSteps(*cluster, 200);
    for (const auto& [other, pid] : before) {
      if (other == task) continue;
      EXPECT_EQ(cluster->Tasks()[other], pid) << other;
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, kSteps);
  EXPECT_EQ(TrainedIn(*cluster, kSteps), TrainedIn(*calm, kSteps));
  EXPECT_THAT(cluster->LogOf("worker/1"),
              AllOf(HasSubstr("ready at 127.0.0.1:"),
                    HasSubstr("strategy hybrid, AUTO"),
                    HasSubstr("SYNCHRONOUS tables on ps: 2 replicas in sync, "
                              "each with a batch of 32")));
}

// Each is lost with everybody who had it: rows, then the variables.
TEST(HybridWorkersTest, APsAndAllWorkersMayBeLost) {
  constexpr int64_t kSteps = 2500;
  LaunchedCluster::Options options = Hybrid(kSteps);
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  Kill(*cluster, "ps/1");
  AwaitSteps(*cluster, 300);
  ASSERT_OK(cluster->Signal("worker/1", SIGSTOP));
  ASSERT_OK(cluster->Signal("worker/0", SIGSTOP));
  ASSERT_OK(cluster->Signal("worker/1", SIGKILL));
  Kill(*cluster, "worker/0");
  AwaitSteps(*cluster, 300);
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, kSteps);
  // Each step is counted once, also where it was made without updates.
  for (const auto& [table, updates] : TrainedIn(*cluster, kSteps).updates) {
    EXPECT_THAT(updates, Each(kSteps)) << table;
  }
}

TEST(HybridWorkersTest, AsynchronousTablesOutliveKills) {
  constexpr int64_t kSteps = 2500;
  LaunchedCluster::Options options = Ratings(kSteps);
  // Named by the job alone: the launcher tells the workers.
  options.overrides = {"strategy.hybrid={tables: ASYNCHRONOUS}"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  for (const std::string task : {"worker/1", "ps/0", "worker/0", "chief/0"}) {
    SCOPED_TRACE(task);
    Kill(*cluster, task);
    AwaitSteps(*cluster, 100);
  }
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, kSteps);
}

TEST(HybridWorkersTest, CtrlCWritesACheckpointFromWhichAnotherStrategyGoesOn) {
  LaunchedCluster::Options options = Hybrid(50000);
  options.overrides = {"checkpoint.every_steps=100000"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(350));
  cluster->SignalLauncher(SIGINT);
  ASSERT_OK_AND_ASSIGN(const auto stopped, cluster->Wait());
  EXPECT_EQ(nlohmann::json::parse(stopped.json)["status"], "interrupted");
  const auto steps = CheckpointStore(cluster->checkpoint_dir()).ListSteps();
  ASSERT_OK(steps);
  ASSERT_GE(steps->back(), 350);

  const int64_t end = steps->back() + 500;
  LaunchedCluster::Options again = Ratings(end);
  again.checkpoint_dir = cluster->checkpoint_dir();
  again.flags = {"--strategy=multi_worker_mirrored"};
  ASSERT_OK_AND_ASSIGN(auto second, LaunchedCluster::Start(again));
  ASSERT_OK_AND_ASSIGN(const auto result, second->Wait());
  ExpectDone(result, end);
}

TEST(HybridWorkersTest, AModelWithoutTablesIsRefusedInOneLine) {
  LaunchedCluster::Options options;
  options.flags = {"--strategy=hybrid"};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.progress,
              HasSubstr("strategy.hybrid: the model has no sparse table"));
}

}  // namespace
}  // namespace parasol
