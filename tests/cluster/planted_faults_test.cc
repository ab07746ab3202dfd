// Faults planted in a cluster are what its chief says bounds the job. All roles
// are in one process.

#include <string>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

constexpr int64_t kWithoutEnd = 100'000'000;

// The machine's clock, with which a task stops when it is told to.
class StoppingClock : public Clock {
 public:
  enum class Stops {
    kNothing,
    kHeartbeats,  // as a stopped process: nobody hears of it
    kOperations,  // as a lock: of threads that never pause, in their work
  };

  void Plant(Stops stops) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stops_ = stops;
  }

  absl::Time Now() override ABSL_LOCKS_EXCLUDED(mu_) {
    thread_local int calls = 0;
    absl::MutexLock lock(&mu_);
    // The first call may be before the work begins.
    calls = stops_ == Stops::kOperations && !pauses_ ? calls + 1 : 0;
    const auto may_go_on = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stops_ != Stops::kOperations;
    };
    if (calls > 1) mu_.Await(absl::Condition(&may_go_on));
    return Clock::Real().Now();
  }

  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    pauses_ = true;
    {
      absl::MutexLock lock(&mu_);
      const auto may_go_on = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return stops_ != Stops::kHeartbeats;
      };
      mu_.Await(absl::Condition(&may_go_on));
    }
    return Clock::Real().AwaitWithTimeout(mu, condition, timeout);
  }

 private:
  inline static thread_local bool pauses_ = false;
  absl::Mutex mu_;
  Stops stops_ ABSL_GUARDED_BY(mu_) = Stops::kNothing;
};

class PlantedFaultsTest : public ClusterRunsTest {
 protected:
  PlantedFaultsTest() {
    cluster_.SetPsClock(1, ps_clock_);
    cluster_.SetWorkerClock(1, worker_clock_);
  }

  void Train() {
    ASSERT_OK(cluster_.Start());
    ASSERT_OK(cluster_.AwaitStep(50));
  }
  // Waits until the first line is about this.
  void ExpectTop(wire::Finding::Kind kind, const std::string& task,
                 const std::string& words) {
    wire::Finding top;
    EXPECT_OK(cluster_.AwaitStatus(
        task,
        [&](const wire::JobStatus& status) {
          if (status.finding_size() > 0) top = status.finding(0);
          return top.kind() == kind && top.task() == task &&
                 absl::StrContains(top.text(), words);
        }))
        << "instead: " << top.text();
  }
  void TearDown() override {
    ps_clock_.Plant(StoppingClock::Stops::kNothing);
    worker_clock_.Plant(StoppingClock::Stops::kNothing);
    cluster_.StopChief().IgnoreError();
  }

  StoppingClock ps_clock_;
  StoppingClock worker_clock_;
  TestCluster cluster_{QuadrantsJob(kWithoutEnd), 2, 2, Directory("planted")};
};

TEST_F(PlantedFaultsTest, AStoppedPs) {
  Train();
  ps_clock_.Plant(StoppingClock::Stops::kHeartbeats);
  ExpectTop(wire::Finding::STOPPED, "ps/1", "not heard");
}

TEST_F(PlantedFaultsTest, AStoppedWorker) {
  Train();
  worker_clock_.Plant(StoppingClock::Stops::kHeartbeats);
  ExpectTop(wire::Finding::STOPPED, "worker/1", "not heard");
}

TEST_F(PlantedFaultsTest, ALockInAPs) {
  Train();
  ps_clock_.Plant(StoppingClock::Stops::kOperations);
  ExpectTop(wire::Finding::STUCK, "ps/1", "wait for it");
}

TEST_F(PlantedFaultsTest, APsThatHasNotCome) {
  ASSERT_OK(cluster_.StartChief());
  ASSERT_OK(cluster_.StartPs(0));
  ExpectTop(wire::Finding::MISSING, "ps/1", "not there");
}

using LaggingEvaluatorTest = ClusterRunsTest;

TEST_F(LaggingEvaluatorTest, AnEvaluatorThatDoesNotComeBoundsTheJob) {
  job::Job job = QuadrantsJob(kWithoutEnd);
  job.mutable_evaluation()->set_every_steps(100);
  job.mutable_evaluation()->set_max_lag(0);
  TestCluster cluster(job, 1, 1, Directory("lag"));
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.AwaitStatus("the evaluation's lag", [](const auto& status) {
    return status.finding_size() > 0 &&
           status.finding(0).kind() == wire::Finding::EVALUATION;
  }));
  cluster.StopChief().IgnoreError();
}

}  // namespace
}  // namespace parasol
