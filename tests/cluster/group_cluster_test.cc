// Workers without ps that lose each other, with all roles in one process: they
// go on with what they have, and end with the bits of a run that nothing
// happened to.

#include <functional>
#include <map>
#include <string>
#include <vector>

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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 150;
constexpr int kWorkers = 3;
constexpr absl::Duration kSlow = absl::Milliseconds(1);

class GroupClusterTest : public ClusterRunsTest {
 protected:
  // A run with tables and `devices` replicas on each worker, to which `disturb`
  // happens.
  static Trained Run(const std::string& run,
                     const std::function<void(TestCluster&)>& disturb,
                     int devices = 1) {
    job::Job job = RatingsJob(kSteps);
    for (int i = 0; i < devices && devices > 1; ++i) {
      job.mutable_strategy()->mutable_multi_worker_mirrored()->add_device(
          absl::StrCat("cpu:", i));
    }
    FillDefaults(job);
    job.mutable_checkpoint()->set_every_steps(40);
    DelayingClock slow(1, kSlow);
    TestCluster cluster(job, /*num_ps=*/0, kWorkers, Directory(run));
    cluster.SetDataDirectory(RatingsDirectory());
    if (run != "undisturbed") cluster.SetWorkerClock(0, slow);
    EXPECT_OK(cluster.StartChief());
    for (int i = 0; i < kWorkers; ++i) EXPECT_OK(cluster.StartWorker(i));
    disturb(cluster);
    EXPECT_OK(cluster.WaitForChief());
    const auto checkpoint = Newest(run);
    EXPECT_EQ(checkpoint->manifest().global_step(), kSteps);
    EXPECT_TRUE(checkpoint->manifest().final());
    return ReadTrained(*checkpoint);
  }
  static Trained Undisturbed(int devices = 1) {
    return Run(
        "undisturbed", [](TestCluster&) {}, devices);
  }

  static void Stop(TestCluster& cluster, int worker) {
    EXPECT_THAT(cluster.StopWorker(worker),
                StatusIs(absl::StatusCode::kCancelled));
  }
};

TEST_F(GroupClusterTest, TheOthersDoTheReplicasOfWorkersThatAreGone) {
  const Trained lost = Run("lost", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(30));
    Stop(cluster, 1);
    ASSERT_OK(cluster.AwaitStep(60));
    Stop(cluster, 2);
  });
  EXPECT_EQ(lost, Undisturbed());
}

TEST_F(GroupClusterTest, WorkersThatComeBackGoOnWithThePeersVariables) {
  const Trained replaced = Run("replaced", [](TestCluster& cluster) {
    for (const int64_t step : {20, 40, 60, 80}) {
      ASSERT_OK(cluster.AwaitStep(step));
      Stop(cluster, 1 + step / 20 % 2);
      ASSERT_OK(cluster.StartWorker(1 + step / 20 % 2));
    }
  });
  EXPECT_EQ(replaced, Undisturbed());
}

// Two replicas of each worker go to others and come back; worker 0's variables
// are a peer's, once.
TEST_F(GroupClusterTest, WorkersOfSeveralDevicesMayBeLostAndComeBack) {
  const Trained replaced = Run(
      "replaced",
      [](TestCluster& cluster) {
        ASSERT_OK(cluster.AwaitStep(20));
        Stop(cluster, 1);
        ASSERT_OK(cluster.AwaitStep(40));
        Stop(cluster, 2);
        ASSERT_OK(cluster.AwaitStep(60));
        ASSERT_OK(cluster.StartWorker(1));
        ASSERT_OK(cluster.AwaitStep(70));
        Stop(cluster, 0);
        ASSERT_OK(cluster.StartWorker(0));
        ASSERT_OK(cluster.StartWorker(2));
      },
      /*devices=*/2);
  EXPECT_EQ(replaced, Undisturbed(/*devices=*/2));
}

TEST_F(GroupClusterTest, ADeviceThatAWorkerLacksIsNamedWithTheWorker) {
  job::Job job = RatingsJob(20);
  job::MultiWorkerMirrored& strategy =
      *job.mutable_strategy()->mutable_multi_worker_mirrored();
  strategy.add_device("cpu:0");
  strategy.add_device("cuda:99");
  FillDefaults(job);
  TestCluster cluster(job, /*num_ps=*/0, /*num_workers=*/2,
                      Directory("lacking"));
  cluster.SetDataDirectory(RatingsDirectory());
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartWorker(1));
  EXPECT_THAT(
      cluster.WaitForWorker(1),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("strategy.multi_worker_mirrored.device[1]: \"cuda:99")));
  EXPECT_THAT(cluster.WaitForChief(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker/1"), HasSubstr("device[1]"))));
}

TEST_F(GroupClusterTest, TheWorkerThatWritesCheckpointsMayBeReplaced) {
  const Trained replaced = Run("replaced", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(50));
    Stop(cluster, 0);
    ASSERT_OK(cluster.StartWorker(0));
  });
  EXPECT_EQ(replaced, Undisturbed());
}

TEST_F(GroupClusterTest, WorkersGoOnWhenTheChiefIsBack) {
  const Trained restarted = Run("restarted", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(50));
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
    ASSERT_OK(cluster.StartChief());
  });
  EXPECT_EQ(restarted, Undisturbed());
}

TEST_F(GroupClusterTest, TheLastStepsAreDoneByWhoeverIsThere) {
  const Trained few = Run("few", [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(kSteps - 20));
    Stop(cluster, 2);
    ASSERT_OK(cluster.AwaitStep(kSteps - 10));
    Stop(cluster, 1);
    ASSERT_OK(cluster.StartWorker(1));
  });
  EXPECT_EQ(few, Undisturbed());
}

TEST_F(GroupClusterTest, AJobThatIsStartedAgainGoesOnFromItsCheckpoint) {
  const Trained want = Undisturbed();
  job::Job job = RatingsJob(kSteps);
  {
    DelayingClock slow(1, kSlow);
    TestCluster first(job, /*num_ps=*/0, kWorkers, Directory("restarted"));
    first.SetDataDirectory(RatingsDirectory());
    first.SetWorkerClock(0, slow);
    ASSERT_OK(first.StartChief());
    for (int i = 0; i < kWorkers; ++i) ASSERT_OK(first.StartWorker(i));
    ASSERT_OK(first.AwaitStep(40));
    EXPECT_THAT(first.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  }
  const int64_t stopped_at = Newest("restarted")->manifest().global_step();
  EXPECT_GE(stopped_at, 40);
  EXPECT_LT(stopped_at, kSteps);
  EXPECT_EQ(Run("restarted", [](TestCluster&) {}), want);
}

TEST_F(GroupClusterTest, AWorkerThatIsNotThereYetIsWaitedForAndNamed) {
  TestCluster cluster(RatingsJob(20), /*num_ps=*/0, /*num_workers=*/2,
                      Directory("late"));
  cluster.SetDataDirectory(RatingsDirectory());
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartWorker(0));
  ASSERT_OK(cluster.AwaitPhase(wire::LOADING));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  EXPECT_THAT(status.missing_task(), ElementsAre("worker/1"));
  ASSERT_OK(cluster.StartWorker(1));
  EXPECT_OK(cluster.WaitForChief());
}

TEST_F(GroupClusterTest, AnErrorOfOneWorkerEndsTheJobEverywhere) {
  TestCluster cluster(RatingsJob(20), /*num_ps=*/0, /*num_workers=*/2,
                      Directory("broken"));
  cluster.SetDataDirectory(RatingsDirectory());
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartWorker(0));
  cluster.SetDataDirectory("/nowhere");
  ASSERT_OK(cluster.StartWorker(1));
  EXPECT_FALSE(cluster.WaitForWorker(1).ok());
  EXPECT_THAT(cluster.WaitForWorker(0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job has failed: worker/1")));
  EXPECT_THAT(
      cluster.WaitForChief(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("worker/1")));
}

}  // namespace
}  // namespace parasol
