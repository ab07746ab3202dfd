// Jobs under hybrid whose tasks are lost and come back, with all roles in one
// process. With tables in step they end with the bits of a run that nothing
// happened to, unless something was lost with all that had it.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/delaying_clock.h"
#include "tests/cluster/ratings.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

constexpr int64_t kSteps = 150;
constexpr int kPs = 2;
constexpr absl::Duration kSlow = absl::Milliseconds(1);

job::Job HybridJob(int64_t steps) {
  job::Job job = RatingsJob(steps);
  job.clear_eval();
  job.mutable_strategy()->mutable_hybrid();
  job.mutable_checkpoint()->set_every_steps(40);
  FillDefaults(job);
  return job;
}

class HybridClusterTest : public ClusterRunsTest {
 protected:
  static absl::Status StartAll(TestCluster& cluster, int workers) {
    absl::Status status = cluster.StartChief();
    for (int i = 0; i < kPs; ++i) status.Update(cluster.StartPs(i));
    for (int i = 0; i < workers; ++i) status.Update(cluster.StartWorker(i));
    return status;
  }
  // A run to which `disturb` happens.
  static Trained Run(const job::Job& job, const std::string& run, int workers,
                     const std::function<void(TestCluster&)>& disturb) {
    DelayingClock slow(1, kSlow);
    TestCluster cluster(job, kPs, workers, Directory(run));
    cluster.SetDataDirectory(RatingsDirectory());
    if (run != "undisturbed") cluster.SetWorkerClock(0, slow);
    EXPECT_OK(StartAll(cluster, workers));
    disturb(cluster);
    EXPECT_OK(cluster.WaitForChief());
    const auto checkpoint = Newest(run);
    EXPECT_EQ(checkpoint->manifest().global_step(), job.end().steps());
    EXPECT_TRUE(checkpoint->manifest().final());
    return ReadTrained(*checkpoint);
  }
  static Trained Run(const std::string& run,
                     const std::function<void(TestCluster&)>& disturb) {
    return Run(HybridJob(kSteps), run, /*workers=*/3, disturb);
  }
  static Trained Undisturbed() {
    return Run("undisturbed", [](TestCluster&) {});
  }

  static void Stop(TestCluster& cluster, int worker) {
    EXPECT_THAT(cluster.StopWorker(worker),
                StatusIs(absl::StatusCode::kCancelled));
  }
};

TEST_F(HybridClusterTest, WorkersThatComeAndGoChangeNoBit) {
  const Trained disturbed = Run("disturbed", [](TestCluster& cluster) {
    for (const int64_t step : {20, 40, 60, 80}) {
      ASSERT_OK(cluster.AwaitStep(step));
      Stop(cluster, 1 + step / 20 % 2);
      ASSERT_OK(cluster.StartWorker(1 + step / 20 % 2));
    }
    ASSERT_OK(cluster.AwaitStep(100));
    Stop(cluster, 1);
    ASSERT_OK(cluster.AwaitStep(120));
    Stop(cluster, 2);
  });
  EXPECT_EQ(disturbed, Undisturbed());
}

TEST_F(HybridClusterTest, TheWorkerThatWritesCheckpointsMayBeReplaced) {
  const Trained replaced = Run("replaced", [](TestCluster& cluster) {
    for (const int64_t step : {50, 100}) {
      ASSERT_OK(cluster.AwaitStep(step));
      Stop(cluster, 0);
      ASSERT_OK(cluster.StartWorker(0));
    }
  });
  EXPECT_EQ(replaced, Undisturbed());
}

TEST_F(HybridClusterTest, AllGoOnWhenTheChiefIsBack) {
  const Trained restarted = Run("restarted", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(50));
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
    ASSERT_OK(cluster.StartChief());
  });
  EXPECT_EQ(restarted, Undisturbed());
}

TEST_F(HybridClusterTest, AJobThatIsStartedAgainGoesOnFromItsCheckpoint) {
  const Trained want = Undisturbed();
  {
    DelayingClock slow(1, kSlow);
    TestCluster first(HybridJob(kSteps), kPs, 3, Directory("again"));
    first.SetDataDirectory(RatingsDirectory());
    first.SetWorkerClock(0, slow);
    ASSERT_OK(StartAll(first, 3));
    ASSERT_OK(first.AwaitStep(60));
    EXPECT_THAT(first.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_THAT(Newest("again")->manifest().global_step(), Ge(60));
  EXPECT_EQ(Run("again", [](TestCluster&) {}), want);
}

// What has had the steps is counted, whatever was lost.
TEST_F(HybridClusterTest, APsThatIsReplacedHasItsRowsAgain) {
  const Trained replaced = Run("ps", [](TestCluster& cluster) {
    for (const int ps : {1, 0}) {
      ASSERT_OK(cluster.AwaitStep(60 + 30 * (1 - ps)));
      EXPECT_THAT(cluster.StopPs(ps), StatusIs(absl::StatusCode::kCancelled));
      ASSERT_OK(cluster.StartPs(ps));
    }
  });
  for (const auto& [table, updates] : replaced.updates) {
    EXPECT_THAT(updates, Each(kSteps)) << table;
  }
}

// The only worker leaves with a checkpoint, as a ps does.
TEST_F(HybridClusterTest, TheOnlyWorkerMayBeReplaced) {
  const auto run = [](const std::string& name, auto disturb) {
    return Run(HybridJob(kSteps), name, /*workers=*/1, disturb);
  };
  const Trained want = run("calm", [](TestCluster&) {});
  const Trained replaced = run("replaced", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(60));
    Stop(cluster, 0);
    ASSERT_OK(cluster.StartWorker(0));
  });
  EXPECT_EQ(replaced, want);
}

TEST_F(HybridClusterTest, AWorkerThatIsNotThereYetIsWaitedForAndNamed) {
  TestCluster cluster(HybridJob(20), kPs, /*num_workers=*/2, Directory("late"));
  cluster.SetDataDirectory(RatingsDirectory());
  ASSERT_OK(StartAll(cluster, 1));
  ASSERT_OK(cluster.AwaitPhase(wire::LOADING));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  EXPECT_THAT(status.missing_task(), ElementsAre("worker/1"));
  // Worker 0's place of a ps is no task of its own.
  for (const wire::TaskStatus& task : status.task()) {
    EXPECT_FALSE(task.task().role() == "ps" && task.task().index() >= kPs);
  }
  ASSERT_OK(cluster.StartWorker(1));
  EXPECT_OK(cluster.WaitForChief());
}

job::Job AsynchronousJob(int64_t steps) {
  job::Job job = HybridJob(steps);
  job.mutable_strategy()->mutable_hybrid()->set_tables(
      job::Hybrid::ASYNCHRONOUS);
  return job;
}

// A table has an update of each replica in a step.
TEST_F(HybridClusterTest, AsynchronousTablesHaveAnUpdateOfEachReplica) {
  const Trained trained = Run(AsynchronousJob(200), "asynchronous",
                              /*workers=*/2, [](TestCluster&) {});
  for (const auto& [table, updates] : trained.updates) {
    EXPECT_THAT(updates, Each(400)) << table;
  }
}

TEST_F(HybridClusterTest, AsynchronousTablesOutliveTheLossOfAnyTask) {
  const Trained trained = Run(
      AsynchronousJob(kSteps), "lossy", /*workers=*/2,
      [](TestCluster& cluster) {
        ASSERT_OK(cluster.AwaitStep(30));
        Stop(cluster, 1);
        ASSERT_OK(cluster.StartWorker(1));
        ASSERT_OK(cluster.AwaitStep(60));
        Stop(cluster, 0);
        ASSERT_OK(cluster.StartWorker(0));
        ASSERT_OK(cluster.AwaitStep(90));
        EXPECT_THAT(cluster.StopPs(1), StatusIs(absl::StatusCode::kCancelled));
        ASSERT_OK(cluster.StartPs(1));
        ASSERT_OK(cluster.AwaitStep(110));
        EXPECT_THAT(cluster.StopChief(),
                    StatusIs(absl::StatusCode::kCancelled));
        ASSERT_OK(cluster.StartChief());
      });
  for (const auto& [table, updates] : trained.updates) {
    EXPECT_THAT(updates, Each(Ge(kSteps))) << table;
  }
}

// A checkpoint of either is gone on from by the other.
TEST_F(HybridClusterTest, TablesMayGoOnInAnotherWay) {
  Run(AsynchronousJob(60), "changed", /*workers=*/2, [](TestCluster&) {});
  Run(HybridJob(100), "changed", /*workers=*/2, [](TestCluster&) {});
  Run(AsynchronousJob(140), "changed", /*workers=*/2, [](TestCluster&) {});
}

}  // namespace
}  // namespace parasol
