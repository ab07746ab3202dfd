// What each consistency mode promises, with all roles in one process.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/delaying_clock.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int64_t kSteps = 200;
constexpr absl::Duration kSlow = absl::Milliseconds(1);

job::Job SynchronousJob(const Replicas& replicas) {
  job::Job job = QuadrantsJob(kSteps);
  MakeSynchronous(replicas, job);
  job.mutable_checkpoint()->set_every_steps(50);
  return job;
}

job::Job BoundedJob(int64_t bound) {
  job::Job job = QuadrantsJob(kSteps);
  job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(bound);
  return job;
}

using Variables = std::map<std::string, std::vector<float>>;

class ConsistencyTest : public ClusterRunsTest {
 protected:
  static durable::CheckpointManifest Manifest(const std::string& run) {
    return Newest(run)->manifest();
  }

  // A run of a synchronous job of two replicas, to which `disturb` happens.
  static Variables RunTwoReplicas(
      const std::string& run, int num_workers,
      const std::function<void(TestCluster&)>& disturb) {
    DelayingClock slow(1, kSlow);
    TestCluster cluster(SynchronousJob({.aggregate = 2, .total = 2}),
                        /*num_ps=*/2, num_workers, Directory(run));
    if (run != "undisturbed") cluster.SetWorkerClock(0, slow);
    EXPECT_OK(cluster.Start());
    disturb(cluster);
    EXPECT_OK(cluster.WaitForChief());
    EXPECT_EQ(Manifest(run).global_step(), kSteps);
    EXPECT_TRUE(Manifest(run).final());
    return ReadVariables(*Newest(run));
  }
};

TEST_F(ConsistencyTest, SynchronousRunsEndWithTheSameBits) {
  const auto nothing = [](TestCluster&) {};
  const Variables want = RunTwoReplicas("undisturbed", 2, nothing);
  EXPECT_EQ(RunTwoReplicas("delays", 2, nothing), want);
  EXPECT_EQ(RunTwoReplicas("one_worker", 1, nothing), want);
  EXPECT_EQ(RunTwoReplicas("three_workers", 3, nothing), want);
}

TEST_F(ConsistencyTest, SynchronousRunsThatLoseAWorkerEndWithTheSameBits) {
  const Variables want = RunTwoReplicas("undisturbed", 2, [](TestCluster&) {});
  const Variables fewer =
      RunTwoReplicas("not_replaced", 2, [](TestCluster& cluster) {
        ASSERT_OK(cluster.AwaitStep(40));
        EXPECT_THAT(cluster.StopWorker(1),
                    StatusIs(absl::StatusCode::kCancelled));
      });
  EXPECT_EQ(fewer, want);
  const Variables replaced =
      RunTwoReplicas("replaced", 2, [](TestCluster& cluster) {
        for (const int64_t step : {30, 60, 90}) {
          ASSERT_OK(cluster.AwaitStep(step));
          EXPECT_THAT(cluster.StopWorker(step / 30 % 2),
                      StatusIs(absl::StatusCode::kCancelled));
          ASSERT_OK(cluster.StartWorker(step / 30 % 2));
        }
      });
  EXPECT_EQ(replaced, want);
}

TEST_F(ConsistencyTest, ASynchronousJobThatIsRestartedEndsWithTheSameBits) {
  const Variables want = RunTwoReplicas("undisturbed", 2, [](TestCluster&) {});
  {
    DelayingClock slow(1, kSlow);
    TestCluster first(SynchronousJob({.aggregate = 2, .total = 2}), 2, 2,
                      Directory("restarted"));
    first.SetWorkerClock(0, slow);
    ASSERT_OK(first.Start());
    ASSERT_OK(first.AwaitStep(80));
    EXPECT_THAT(first.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  }
  ASSERT_LT(Manifest("restarted").global_step(), kSteps);
  EXPECT_EQ(RunTwoReplicas("restarted", 2, [](TestCluster&) {}), want);
}

TEST_F(ConsistencyTest, SynchronousWorkersGoOnWhileTheChiefRestarts) {
  const Variables want = RunTwoReplicas("undisturbed", 2, [](TestCluster&) {});
  const auto restart = [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(40));
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
    ASSERT_OK(cluster.StartChief());
  };
  EXPECT_EQ(RunTwoReplicas("chief_restarts", 2, restart), want);
}

TEST_F(ConsistencyTest, ASynchronousWorkerOfAnotherRunIsToStartAgain) {
  job::Job job = SynchronousJob({.aggregate = 1, .total = 1});
  job.mutable_end()->set_steps(100000);
  // The second worker has no replica, and so nothing that could fail.
  TestCluster cluster(job, 1, 2, Directory("another"));
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(40));
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  fs::remove_all(Directory("another"));
  ASSERT_OK(cluster.StartChief());
  for (const int worker : {0, 1}) {
    EXPECT_THAT(cluster.WaitForWorker(worker),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("initialised anew")));
  }
}

TEST_F(ConsistencyTest, AJobWithABackupEndsAtItsStep) {
  DelayingClock slow(1, kSlow);
  TestCluster cluster(SynchronousJob({.aggregate = 2, .total = 3}), 2, 3,
                      Directory("backup"));
  cluster.SetWorkerClock(2, slow);
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_EQ(Manifest("backup").global_step(), kSteps);
}

TEST_F(ConsistencyTest, ABackupsGradientsAreDroppedAndCounted) {
  DelayingClock slow(1, kSlow);
  job::Job job = SynchronousJob({.aggregate = 2, .total = 3});
  job.mutable_end()->set_steps(100000);
  TestCluster cluster(job, 2, 3, Directory("stale"));
  cluster.SetWorkerClock(2, slow);
  ASSERT_OK(cluster.Start());
  const auto none_is_counted = [&cluster] {
    return absl::StrContains(cluster.metrics().Text(),
                             "parasol_worker_stale_gradients_total 0");
  };
  for (int64_t step = 20; none_is_counted(); step += 20) {
    ASSERT_OK(cluster.AwaitStep(step));
  }
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ConsistencyTest, ALostWorkerEndsTheSynchronousJobThatSaysSo) {
  job::Job job = SynchronousJob({.aggregate = 2, .total = 2});
  job.mutable_parameter_server()->mutable_synchronous()->set_lost_worker(
      job::Synchronous::FAIL);
  job.mutable_end()->set_steps(100000);
  TestCluster cluster(job, 1, 2, Directory("fail"));
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(10));
  EXPECT_THAT(cluster.StopWorker(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(cluster.WaitForChief(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("worker/1 is gone")));
}

// How far apart the clocks of the workers were that saw the end.
int64_t ClockDistance(const durable::CheckpointManifest& manifest) {
  std::vector<int64_t> clocks;
  for (const auto& worker : manifest.worker_progress()) {
    if (worker.has_clock()) clocks.push_back(worker.clock());
  }
  EXPECT_EQ(clocks.size(), 2u);
  const auto [first, last] = std::minmax_element(clocks.begin(), clocks.end());
  return *last - *first;
}

TEST_F(ConsistencyTest, ASlowWorkerHoldsTheOtherBackByTheBound) {
  constexpr int64_t kBound = 2;
  DelayingClock slow(1, kSlow);
  TestCluster cluster(BoundedJob(kBound), 2, 2, Directory("bounded"));
  cluster.SetWorkerClock(1, slow);
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_EQ(Manifest("bounded").global_step(), kSteps);
  EXPECT_LE(ClockDistance(Manifest("bounded")), kBound + 1);
}

TEST_F(ConsistencyTest, InLockstepWorkersStayWithinAStep) {
  TestCluster cluster(BoundedJob(0), 1, 2, Directory("lockstep"));
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_EQ(Manifest("lockstep").global_step(), kSteps);
  EXPECT_LE(ClockDistance(Manifest("lockstep")), 1);
}

TEST_F(ConsistencyTest, WithinTheBoundALostWorkerIsWaitedForNoMore) {
  TestCluster cluster(BoundedJob(1), 1, 2, Directory("lost"));
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(40));
  EXPECT_THAT(cluster.StopWorker(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_EQ(Manifest("lost").global_step(), kSteps);
}

}  // namespace
}  // namespace parasol
