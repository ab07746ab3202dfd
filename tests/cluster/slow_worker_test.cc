// A worker that is slower than the others is named in every mode; workers that
// wait for it are not. All roles are in one process.

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/progress/task_notes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/ratings.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr int64_t kEndless = 100'000'000;
constexpr int kWorkers = 3;

// The machine's clock, as on a machine whose processor is 200 times as slow:
// the thread that computes pauses for what its passes have used of the real
// one. Workers give that thread the policy of batches.
class SlowComputerClock : public Clock {
 public:
  absl::Time Now() override {
    if (sched_getscheduler(0) == SCHED_BATCH) {
      thread_local absl::Duration paid_for = ProcessorTime();
      const absl::Duration used = ProcessorTime() - paid_for;
      if (used > kMostOfAWait) {
        Clock::Real().Pause(std::min(200 * used, absl::Milliseconds(300)));
      }
      paid_for = ProcessorTime();
    }
    return Clock::Real().Now();
  }
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return Clock::Real().AwaitWithTimeout(mu, condition, timeout);
  }

 private:
  static constexpr absl::Duration kMostOfAWait = absl::Microseconds(60);

  // Of the calling thread.
  static absl::Duration ProcessorTime() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  }
};

std::vector<std::string> SlowTasks(const wire::JobStatus& status) {
  std::vector<std::string> names;
  for (const wire::TaskStatus& task : status.task()) {
    if (!task.slow().empty()) names.push_back(NameOfTask(task));
  }
  return names;
}

class SlowWorkerTest : public ClusterRunsTest {
 protected:
  // Runs the job until worker/1, which is slow, is named, also as what bounds
  // the job, and returns who is named then.
  static std::vector<std::string> Named(const job::Job& job, int num_ps,
                                        const std::string& data,
                                        const std::string& run) {
    SlowComputerClock slow;
    TestCluster cluster(job, num_ps, kWorkers, Directory(run));
    cluster.SetDataDirectory(data);
    cluster.SetWorkerClock(1, slow);
    // Its waits are longer, too.
    cluster.SetPaceLimits({.min_loss = .1,
                           .window = absl::Seconds(2),
                           .recent = absl::Seconds(1),
                           .hold = absl::Seconds(1),
                           .warm_up = absl::Seconds(3)},
                          absl::Seconds(10));
    std::vector<std::string> named;
    const absl::Status started = cluster.Start();
    EXPECT_OK(started);
    if (!started.ok()) return named;
    EXPECT_OK(cluster.AwaitStatus("a slow worker/1", [&](const auto& status) {
      named = SlowTasks(status);
      // The metric follows.
      return std::count(named.begin(), named.end(), "worker/1") > 0 &&
             status.finding(0).kind() == wire::Finding::PROCESSOR &&
             status.finding(0).task() == "worker/1" &&
             absl::StrContains(cluster.metrics().Text(),
                               R"(parasol_chief_slow_task{task="worker/1"} 1)");
    }));
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
    return named;
  }
};

// Passes are long beside kMostOfAWait: the clock knows them.
job::Job WithLongPasses(job::Job job) {
  job.mutable_train()->set_batch_size(400);
  return job;
}
job::Job LongPasses() { return WithLongPasses(QuadrantsJob(kEndless)); }

TEST_F(SlowWorkerTest, Asynchronous) {
  EXPECT_THAT(Named(LongPasses(), 2, QuadrantsDirectory(), "asynchronous"),
              Contains("worker/1"));
}

TEST_F(SlowWorkerTest, BoundedStaleness) {
  job::Job job = LongPasses();
  job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(4);
  EXPECT_THAT(Named(job, 2, QuadrantsDirectory(), "bounded"),
              Contains("worker/1"));
}

TEST_F(SlowWorkerTest, Synchronous) {
  job::Job job = LongPasses();
  job.mutable_parameter_server()->mutable_synchronous();
  EXPECT_THAT(Named(job, 2, QuadrantsDirectory(), "synchronous"),
              ElementsAre("worker/1"));
}

TEST_F(SlowWorkerTest, MultiWorkerMirrored) {
  EXPECT_THAT(Named(LongPasses(), 0, QuadrantsDirectory(), "mirrored"),
              ElementsAre("worker/1"));
}

TEST_F(SlowWorkerTest, Hybrid) {
  job::Job job = WithLongPasses(RatingsJob(kEndless));
  job.clear_eval();
  job.mutable_strategy()->mutable_hybrid();
  FillDefaults(job);
  EXPECT_THAT(Named(job, 2, RatingsDirectory(), "hybrid"),
              ElementsAre("worker/1"));
}

TEST_F(SlowWorkerTest, AWorkerThatHasNotComeIsNamed) {
  TestCluster cluster(QuadrantsJob(kEndless), 1, kWorkers, Directory("absent"));
  cluster.SetPaceLimits({}, absl::Milliseconds(100));
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  for (const int index : {0, 2}) ASSERT_OK(cluster.StartWorker(index));
  EXPECT_OK(cluster.AwaitStatus("no worker/1", [](const auto& status) {
    return status.absent_task_size() == 1 &&
           status.absent_task(0).task() == "worker/1";
  }));
  ASSERT_OK(cluster.StartWorker(1));
  EXPECT_OK(cluster.AwaitStatus("worker/1 is there", [](const auto& status) {
    return status.absent_task_size() == 0;
  }));
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace parasol
