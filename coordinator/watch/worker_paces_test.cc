#include "coordinator/watch/worker_paces.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kHeartbeat = absl::Seconds(1);
constexpr absl::Duration kNamedWithin = absl::Seconds(15);

enum Mode { kAlone, kInStep };

// A worker that trains, and reports its totals.
struct Worker {
  // Seconds of a batch. While it stands still it waits for a push.
  double input = .001;
  double pull = .001;
  double compute = .01;
  double push = .001;
  double stood_still = 0;

  double OwnBatch() const {
    return input + pull + compute + push + stood_still;
  }
  // Does what is done in `seconds` if a batch takes `batch`.
  void Train(double seconds, double batch) {
    const double done = seconds / batch;
    batches += done;
    times["input"] += done * input;
    times["pull"] += done * pull;
    times["compute"] += done * compute;
    times["push"] += done * (batch - input - pull - compute);
    times["stood_still"] += done * stood_still;
  }
  wire::WorkerTotals Totals() {
    const auto time = [&](const char* part) {
      return ToProto(absl::Seconds(times[part]));
    };
    wire::WorkerTotals totals;
    totals.set_steps(static_cast<int64_t>(batches));
    totals.set_batches(static_cast<int64_t>(batches));
    *totals.mutable_times()->mutable_input() = time("input");
    *totals.mutable_times()->mutable_pull() = time("pull");
    *totals.mutable_times()->mutable_compute() = time("compute");
    *totals.mutable_times()->mutable_push() = time("push");
    *totals.mutable_times()->mutable_stood_still() = time("stood_still");
    *totals.mutable_work() = ToProto(absl::Seconds(
        times["input"] + times["compute"] + times["stood_still"]));
    return totals;
  }

  double batches = 0;
  std::map<std::string, double> times = {};
};

// Workers that train at paces of their own, or in step, at the slowest one's.
class Cluster {
 public:
  Cluster(int count, Mode mode)
      : mode_(mode), workers_(count), paces_(PaceLimits(), mode == kInStep) {}

  Worker& worker(int index) { return workers_[index]; }
  WorkerPaces& paces() { return paces_; }
  absl::Time now() const { return now_; }

  void Train(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= kHeartbeat) {
      double slowest = 0;
      for (const Worker& worker : workers_) {
        slowest = std::max(slowest, worker.OwnBatch());
      }
      for (Worker& worker : workers_) {
        worker.Train(absl::ToDoubleSeconds(kHeartbeat),
                     mode_ == kInStep ? slowest : worker.OwnBatch());
      }
      Report();
    }
  }
  // Lets a heartbeat's time go by without any training.
  void Report() {
    now_ += kHeartbeat;
    for (size_t i = 0; i < workers_.size(); ++i) {
      paces_.Report(static_cast<int>(i), 100 + i, workers_[i].Totals(), now_);
    }
    paces_.Judge(now_);
  }

  wire::TaskStatus StatusOf(int worker, absl::Duration silence = {}) const {
    wire::TaskStatus status;
    paces_.Describe(worker, silence, status);
    return status;
  }
  std::vector<int> Slow() const {
    std::vector<int> slow;
    for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
      if (!StatusOf(i).slow().empty()) slow.push_back(i);
    }
    return slow;
  }
  // Returns the time of training until somebody is slow, or until nobody is.
  absl::Duration TimeUntil(bool somebody) {
    const absl::Time start = now_;
    while (Slow().empty() == somebody && now_ - start < absl::Minutes(2)) {
      Train(kHeartbeat);
    }
    return now_ - start;
  }

 private:
  const Mode mode_;
  std::vector<Worker> workers_;
  WorkerPaces paces_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
};

TEST(WorkerPacesTest, OneSlowOfTwoThreeOrEightIsNamed) {
  for (const Mode mode : {kAlone, kInStep}) {
    for (const int count : {2, 3, 8}) {
      for (const double factor : {3., 10., 100.}) {
        SCOPED_TRACE(absl::StrCat(count, " workers, mode ", mode, ", ", factor,
                                  " times"));
        Cluster cluster(count, mode);
        cluster.Train(absl::Seconds(30));
        EXPECT_THAT(cluster.Slow(), IsEmpty());
        cluster.worker(1).compute *= factor;
        EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
        EXPECT_THAT(cluster.Slow(), ElementsAre(1));
        cluster.Train(absl::Minutes(1));
        EXPECT_THAT(cluster.Slow(), ElementsAre(1));
        EXPECT_THAT(cluster.StatusOf(1).slow(), HasSubstr("(compute "));
      }
    }
  }
}

TEST(WorkerPacesTest, AWorkerThatIsSlowFromTheStartIsNamed) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    Cluster cluster(3, mode);
    cluster.worker(2).input = .05;
    EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
    EXPECT_THAT(cluster.Slow(), ElementsAre(2));
    EXPECT_THAT(cluster.StatusOf(2).slow(), HasSubstr("(input "));
  }
}

TEST(WorkerPacesTest, NobodyIsSlowWhileAllWaitForAPs) {
  for (const int count : {2, 3, 8}) {
    for (const int stall : {2, 6, 10, 30}) {
      SCOPED_TRACE(absl::StrCat(count, " workers, ", stall, " s"));
      Cluster cluster(count, kAlone);
      const auto train = [&](absl::Duration time) {
        for (; time > absl::ZeroDuration(); time -= kHeartbeat) {
          cluster.Train(kHeartbeat);
          EXPECT_THAT(cluster.Slow(), IsEmpty());
        }
      };
      for (int i = 0; i < count; ++i) cluster.worker(i).compute *= 1 + .05 * i;
      train(absl::Seconds(30));
      for (int i = 0; i < count; ++i) cluster.worker(i).pull = 1e6;
      train(absl::Seconds(stall));
      for (int i = 0; i < count; ++i) cluster.worker(i).pull = .001;
      train(absl::Seconds(30));
    }
  }
}

TEST(WorkerPacesTest, OneOfAllThatWaitIsSlowIfItGoesOnWaiting) {
  Cluster cluster(3, kAlone);
  cluster.Train(absl::Seconds(30));
  for (int i = 0; i < 3; ++i) cluster.worker(i).pull = 1e6;
  cluster.Train(absl::Seconds(10));
  for (int i = 1; i < 3; ++i) cluster.worker(i).pull = .001;
  EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
  EXPECT_THAT(cluster.Slow(), ElementsAre(0));
}

TEST(WorkerPacesTest, StepsOfSecondsAreComparedToo) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    Cluster cluster(3, mode);
    for (int i = 0; i < 3; ++i) cluster.worker(i).compute = 1;
    cluster.Train(absl::Minutes(1));
    EXPECT_THAT(cluster.Slow(), IsEmpty());
    cluster.worker(0).compute = 3;
    EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
    EXPECT_THAT(cluster.Slow(), ElementsAre(0));
  }
}

TEST(WorkerPacesTest, AWorkerThatIsInOneBatchForLongIsNamed) {
  Cluster cluster(3, kInStep);
  cluster.Train(absl::Seconds(30));
  // The others wait for it: nobody ends a batch any more.
  int seconds = 0;
  for (; cluster.Slow().empty() && seconds < 60; ++seconds) {
    for (int i = 0; i < 3; ++i) {
      cluster.worker(i).times[i == 1 ? "compute" : "push"] += 1;
    }
    cluster.Report();
  }
  EXPECT_LE(seconds, 15);
  EXPECT_THAT(cluster.Slow(), ElementsAre(1));
}

TEST(WorkerPacesTest, AllEquallySlowAreNot) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    Cluster cluster(4, mode);
    cluster.Train(absl::Seconds(20));
    for (int i = 0; i < 4; ++i) cluster.worker(i).compute = .5;
    for (int second = 0; second < 60; ++second) {
      cluster.Train(kHeartbeat);
      ASSERT_THAT(cluster.Slow(), IsEmpty()) << second;
    }
  }
}

TEST(WorkerPacesTest, JitterAndAPauseOfSecondsNameNobody) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    std::mt19937 random(7);
    std::uniform_real_distribution<double> time(.004, .02);
    Cluster cluster(4, mode);
    for (int second = 0; second < 300; ++second) {
      for (int i = 0; i < 4; ++i) cluster.worker(i).compute = time(random);
      // Every minute one of them needs four seconds for a batch.
      if (second % 60 >= 20 && second % 60 < 24) {
        cluster.worker(second / 60 % 4).compute = 4;
      }
      cluster.Train(kHeartbeat);
      ASSERT_THAT(cluster.Slow(), IsEmpty()) << second;
    }
  }
}

TEST(WorkerPacesTest, AWorkerThatIsAsFastAgainIsNamedNoMore) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    Cluster cluster(3, mode);
    cluster.worker(1).compute = .1;
    EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
    cluster.worker(1).compute = .01;
    EXPECT_LE(cluster.TimeUntil(false), kNamedWithin);
    cluster.Train(absl::Minutes(1));
    EXPECT_THAT(cluster.Slow(), IsEmpty());
  }
}

// A process that is stopped and goes on again and again is stopped in a wait as
// likely as in a pass.
TEST(WorkerPacesTest, AWorkerThatStandsStillInWaitsIsNamed) {
  for (const Mode mode : {kAlone, kInStep}) {
    SCOPED_TRACE(mode);
    Cluster cluster(3, mode);
    cluster.Train(absl::Seconds(20));
    cluster.worker(1).stood_still = .1;
    EXPECT_LE(cluster.TimeUntil(true), kNamedWithin);
    EXPECT_THAT(cluster.Slow(), ElementsAre(1));
    EXPECT_THAT(cluster.StatusOf(1).slow(), HasSubstr("(standing still "));
  }
}

// On a machine with too much to do all processes wake late: those that wait for
// a slow worker stand still for most of their waits.
TEST(WorkerPacesTest, OfABusyMachineThatWhichOthersWaitForIsNamed) {
  for (const double share : {.3, .6, .9}) {
    SCOPED_TRACE(share);
    Cluster cluster(3, kInStep);
    cluster.worker(1).compute = 3;
    for (const int waiter : {0, 2})
      cluster.worker(waiter).stood_still = 3 * share;
    EXPECT_LE(cluster.TimeUntil(true), 2 * kNamedWithin);
    EXPECT_THAT(cluster.Slow(), ElementsAre(1));
    cluster.Train(absl::Minutes(1));
    EXPECT_THAT(cluster.Slow(), ElementsAre(1));
  }
}

TEST(WorkerPacesTest, NobodyOfABusyMachineIsSlowIfAllAreAlike) {
  Cluster cluster(3, kInStep);
  for (const int worker : {0, 1, 2}) cluster.worker(worker).push = .03;
  for (const int worker : {0, 2}) cluster.worker(worker).stood_still = .004;
  cluster.Train(absl::Minutes(1));
  EXPECT_THAT(cluster.Slow(), IsEmpty());
}

TEST(WorkerPacesTest, AWorkerThatIsNotHeardIsNamedBeforeItIsLost) {
  Cluster cluster(2, kInStep);
  cluster.Train(absl::Seconds(20));
  EXPECT_EQ(cluster.StatusOf(0, absl::Seconds(3)).slow(), "");
  EXPECT_EQ(cluster.StatusOf(0, absl::Milliseconds(6500)).slow(),
            "not heard for 6s");
}

TEST(WorkerPacesTest, TheFirstBatchesOfAWorkerSayNothing) {
  Cluster cluster(2, kAlone);
  cluster.Train(absl::Seconds(30));
  // Compiles for ten seconds, and then goes on like the other one.
  wire::WorkerTotals totals;
  for (int second = 0; second < 60; ++second) {
    if (second < 10) {
      totals.mutable_times()->mutable_compute()->set_seconds(second + 1);
    } else {
      totals.set_steps(totals.steps() + 77);
      totals.set_batches(totals.steps());
      totals.mutable_times()->mutable_compute()->set_seconds(second + 1);
    }
    cluster.paces().Report(2, 200, totals, cluster.now());
    cluster.Train(kHeartbeat);
    ASSERT_EQ(cluster.StatusOf(2).slow(), "") << second;
  }
}

TEST(WorkerPacesTest, WorkOfSeveralReplicasIsNotSlow) {
  Cluster cluster(2, kInStep);
  cluster.Train(absl::Seconds(20));
  for (int second = 0; second < 30; ++second) {
    // Four replicas of each step one after the other.
    wire::WorkerTotals totals;
    totals.set_steps(20 * (second + 1));
    totals.set_batches(80 * (second + 1));
    totals.mutable_times()->mutable_compute()->set_seconds(second + 1);
    totals.mutable_work()->set_seconds(second + 1);
    cluster.paces().Report(2, 200, totals, cluster.now());
    cluster.Train(kHeartbeat);
    ASSERT_THAT(cluster.StatusOf(2).slow(), "") << second;
  }
}

TEST(WorkerPacesTest, WhatIsLittleOfAStepHoldsUpNobody) {
  Cluster cluster(3, kInStep);
  for (int i = 0; i < 3; ++i) {
    cluster.worker(i).compute = .0005;
    cluster.worker(i).push = .05;
  }
  cluster.worker(1).compute = .004;
  cluster.Train(absl::Minutes(1));
  EXPECT_THAT(cluster.Slow(), IsEmpty());
}

TEST(WorkerPacesTest, AWorkerAloneIsSlowForNobody) {
  Cluster cluster(1, kAlone);
  cluster.Train(absl::Seconds(10));
  cluster.worker(0).compute = 1;
  cluster.Train(absl::Minutes(1));
  EXPECT_THAT(cluster.Slow(), IsEmpty());
}

TEST(WorkerPacesTest, APaceHasTheRateAndTheTimesOfAStep) {
  Cluster cluster(2, kAlone);
  cluster.worker(1).compute = .037;
  cluster.Train(absl::Minutes(1));
  const wire::WorkerPace pace = cluster.StatusOf(1).pace();
  EXPECT_NEAR(pace.steps_per_second(), 25, 1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(FromProto(pace.step().compute())), 37,
              1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(FromProto(pace.step().input())), 1,
              .1);
  EXPECT_NEAR(pace.slowness(), 40. / 13, .1);
}

// While a ps is loaded the order in which workers notice it says nothing.
TEST(WorkerPacesTest, AWaitThatIsNotTheWorkersIsNotMeasured) {
  Cluster cluster(2, kAlone);
  cluster.Train(absl::Seconds(20));
  cluster.worker(1).pull = 1;
  for (int second = 0; second < 30; ++second) {
    cluster.Train(kHeartbeat);
    cluster.paces().StartOver();
    ASSERT_THAT(cluster.Slow(), IsEmpty());
  }
}

TEST(WorkerPacesTest, ANewProcessIsMeasuredAnew) {
  Cluster cluster(2, kAlone);
  cluster.worker(1).compute = .1;
  cluster.Train(absl::Seconds(30));
  ASSERT_THAT(cluster.Slow(), ElementsAre(1));
  cluster.paces().Forget(1);
  EXPECT_THAT(cluster.Slow(), IsEmpty());
  Worker quick;
  for (int second = 0; second < 30; ++second) {
    quick.Train(1, quick.OwnBatch());
    cluster.paces().Report(1, 999, quick.Totals(), cluster.now());
    cluster.paces().Judge(cluster.now() + kHeartbeat * second);
  }
  EXPECT_THAT(cluster.Slow(), IsEmpty());
}

TEST(WorkerPacesTest, TotalsThatMakeNoSenseAreIgnored) {
  Cluster cluster(2, kAlone);
  cluster.Train(absl::Seconds(20));
  const double rate = cluster.StatusOf(1).pace().steps_per_second();
  wire::WorkerTotals totals = cluster.worker(1).Totals();
  totals.set_batches(-1);
  cluster.paces().Report(1, 101, totals, cluster.now());
  totals = cluster.worker(1).Totals();
  totals.mutable_times()->mutable_pull()->set_seconds(
      std::numeric_limits<int64_t>::max());
  cluster.paces().Report(1, 101, totals, cluster.now());
  totals = cluster.worker(1).Totals();
  totals.mutable_work()->set_seconds(-5);
  cluster.paces().Report(1, 101, totals, cluster.now());
  // One that is late.
  totals = cluster.worker(1).Totals();
  totals.set_batches(1);
  cluster.paces().Report(1, 101, totals, cluster.now());
  cluster.Train(absl::Seconds(20));
  EXPECT_THAT(cluster.Slow(), IsEmpty());
  EXPECT_NEAR(cluster.StatusOf(1).pace().steps_per_second(), rate, 1);
}

}  // namespace
}  // namespace parasol
