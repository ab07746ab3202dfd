// Bounded staleness under a simulated network: requests, answers and steps take
// random times, workers join, die, stand still and return.

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/steps/step_ledger.h"
#include "coordinator/testing/ledger_claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StepLedger Ledger(int64_t bound, int64_t end) {
  StepLedger ledger({.bound = bound});
  ledger.SetEnd(end);
  return ledger;
}

TEST(BoundedStaleness, AWorkerIsGrantedTheBoundAndOneAboveTheSlowest) {
  StepLedger ledger = Ledger(/*bound=*/2, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 3);
  ledger.Report(1, 3);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 3);
  ledger.Report(2, 1);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 4);
}

TEST(BoundedStaleness, ABoundOfZeroIsLockstep) {
  StepLedger ledger = Ledger(0, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 1);
  EXPECT_EQ(Claim(ledger, 2, 100, 2), 1);
  ledger.Report(1, 1);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 1);
  ledger.Report(2, 1);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 2);
}

TEST(BoundedStaleness, ALostWorkerHoldsUpNobody) {
  StepLedger ledger = Ledger(0, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 1, 2);
  ledger.Report(1, 1);
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  ledger.Release(2);
  EXPECT_EQ(Claim(ledger, 1, 1, 1), 2);
}

TEST(BoundedStaleness, OneThatJoinsStartsBesideTheSlowest) {
  StepLedger ledger = Ledger(1, 1000);
  ledger.Enter(1, {0});
  for (int64_t done = 1; done <= 50; ++done) {
    Claim(ledger, 1, 1, 1);
    ledger.Report(1, done);
  }
  ledger.Enter(2, {0});
  EXPECT_EQ(ledger.ClockOf(2), 50);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 52) << "is not held up by its 0 steps";
  EXPECT_EQ(Claim(ledger, 2, 100, 2), 2) << "nor runs ahead";
}

TEST(BoundedStaleness, OneThatReturnsIsRaisedToTheSlowest) {
  StepLedger ledger = Ledger(1, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ledger.Release(2);
  for (int64_t done = 1; done <= 50; ++done) {
    Claim(ledger, 1, 1, 1);
    ledger.Report(1, done);
  }
  ledger.Enter(2, {0});
  EXPECT_EQ(ledger.ClockOf(2), 50);
}

TEST(BoundedStaleness, TheSlowestIsNamedWhileItHoldsUpAnother) {
  StepLedger ledger = Ledger(1, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 10, 2);
  ledger.Report(1, 1);
  EXPECT_THAT(ledger.Awaited(), IsEmpty());
  ledger.Report(1, 2);
  EXPECT_THAT(ledger.Awaited(), ElementsAre(2));
}

TEST(BoundedStaleness, ARestartedChiefGoesOnFromTheClocksOfItsCheckpoint) {
  StepLedger ledger = Ledger(3, 1000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 3, 2);
  ledger.Report(1, 3);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(ledger.global_step());
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest, {.bound = 3});
  restored.SetEnd(1000);
  restored.Enter(1, {4});
  restored.Enter(9, {0});  // a new process
  restored.Enter(2, {1});
  EXPECT_EQ(restored.ClockOf(1), 4);
  EXPECT_EQ(restored.ClockOf(2), 1);
  EXPECT_LE(restored.ClockOf(9), 4);
  EXPECT_EQ(restored.global_step(), 5);
}

TEST(BoundedStaleness,
     OneThatCameAfterTheCheckpointHoldsUpNobodyAfterARestart) {
  StepLedger ledger = Ledger(1, 1000);
  ledger.Enter(1, {0});
  durable::CheckpointManifest manifest;
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest, {.bound = 1});
  restored.SetEnd(1000);
  restored.Enter(9, {30});  // joined the chief before this one
  restored.Enter(1, {100});
  EXPECT_EQ(Claim(restored, 1, 10, 2), 102) << "does not await 100 steps of 9";
  EXPECT_EQ(restored.ClockOf(9), 100);
  EXPECT_EQ(restored.global_step(), 130);
}

// Worker 9 came after the checkpoint, when worker 1 had done a step, and is in
// the middle of its first one.
TEST(BoundedStaleness, AWorkerTellsARestartedChiefWhatItsClockIsAheadBy) {
  StepLedger ledger = Ledger(1, 1000);
  ledger.Enter(1, {0});
  durable::CheckpointManifest manifest;
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  Claim(ledger, 1, 1, 1);
  ledger.Report(1, 1);
  ledger.Enter(9, {0});
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(9);
  wire::ClaimStepsResponse answer;
  ledger.Answer(claim, 1, 2, answer);
  ASSERT_EQ(answer.clock_lead(), 1);
  ASSERT_EQ(answer.granted_steps(), 1);
  StepLedger restored(manifest, {.bound = 1});
  restored.SetEnd(1000);
  restored.Enter(1, {.completed = 2});
  restored.Enter(9, {.completed = 0, .clock_lead = answer.clock_lead()});
  EXPECT_EQ(restored.ClockOf(9), 1);
  EXPECT_EQ(Claim(restored, 1, 10, 2), 3) << "2 ahead of what 9 has done";
  EXPECT_EQ(restored.ClockOf(9), 1) << "not raised: it is in a step";
}

// Worker 2 was gone while worker 1 did 1,000 steps, and comes back while the
// chief restarts.
TEST(BoundedStaleness, OneThatWasGoneHoldsUpNobodyAfterARestart) {
  StepLedger ledger = Ledger(0, 5000);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ledger.Release(2);
  for (int64_t done = 1; done <= 1000; ++done) {
    Claim(ledger, 1, 1, 1);
    ledger.Report(1, done);
  }
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1000);
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest, {.bound = 0});
  restored.SetEnd(5000);
  restored.Enter(1, {.completed = 1000, .clock_lead = 0});
  restored.Enter(2, {.completed = 5, .clock_lead = 0});
  Claim(restored, 2, 1, 2);
  EXPECT_EQ(restored.ClockOf(2), 999);
}

TEST(BoundedStaleness, AnAbsurdLeadHoldsUpNobodyForGood) {
  for (const int64_t lead : {INT64_MIN, INT64_MAX}) {
    StepLedger ledger(durable::CheckpointManifest(), {.bound = 1});
    ledger.SetEnd(1000);
    ledger.Enter(1, {0});
    ledger.Enter(2, {.completed = 0, .clock_lead = lead});
    Claim(ledger, 2, 10, 2);
    ledger.Release(2);
    Claim(ledger, 1, 10, 1);
    ledger.Report(1, 1);
    EXPECT_GE(Claim(ledger, 1, 10, 1), 2);
  }
}

// One schedule: the ledger behind a network, a few workers, and an observer who
// sees the true clocks.
class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed),
        bound_(UpTo(5)),
        ledger_({.bound = bound_}),
        worst_delay_(1 + UpTo(50)) {
    ledger_.SetEnd(20 + UpTo(150));
  }

  // The number of simulated events; 0: it stalled.
  void Run() {
    const int workers = 1 + UpTo(5);
    for (int i = 0; i < workers; ++i) Join();
    while (!ledger_.IsComplete()) {
      ASSERT_FALSE(events_.empty()) << "nothing is under way: a deadlock";
      ASSERT_LT(++count_, 200000) << "no progress";
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      Handle(event);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  enum class Kind {
    kAskArrives,
    kExtraAskArrives,
    kAnswerArrives,
    kStepDone,
    kFate
  };
  struct Event {
    int64_t time = 0;
    int64_t order = 0;  // among equal times
    Kind kind = Kind::kFate;
    uint64_t worker = 0;
    int64_t total = 0;  // reported, or granted
    int64_t version = 0;
    int64_t started = 0;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.order) < std::tie(time, order);
    }
  };
  struct Worker {
    int64_t done = 0;
    int64_t granted = 0;
    int64_t version = 0;
    int64_t lead = 0;  // clock - done, as the ledger said when it entered
    int slowness = 1;
    bool computes = false;
    bool live = true;  // its lease lasts
    bool dead = false;
    int64_t clock() const { return done + lead; }
  };

  int UpTo(int n) { return static_cast<int>(random_() % n); }
  void Schedule(int64_t delay, Kind kind, uint64_t worker, int64_t total = 0,
                int64_t version = 0, int64_t started = 0) {
    events_.push(
        {now_ + delay, order_++, kind, worker, total, version, started});
  }
  void ScheduleAsk(int64_t delay, Kind kind, uint64_t id) {
    const Worker& worker = workers_[id];
    Schedule(delay, kind, id, worker.done, worker.version,
             worker.done + (worker.computes ? 1 : 0));
  }
  void Enter(uint64_t id) {
    Worker& worker = workers_[id];
    ledger_.Enter(id, {worker.done});
    worker.lead = ledger_.ClockOf(id) - worker.done;
    worker.live = true;
  }
  void Join() {
    const uint64_t id = next_id_++;
    workers_[id].slowness = 1 + UpTo(10) * UpTo(10);
    Enter(id);
    Schedule(UpTo(worst_delay_), Kind::kAskArrives, id);
    Schedule(UpTo(3000), Kind::kFate, id);
  }
  int CountLive() {
    return static_cast<int>(
        std::count_if(workers_.begin(), workers_.end(),
                      [](const auto& entry) { return entry.second.live; }));
  }

  void Handle(const Event& event) {
    Worker& worker = workers_[event.worker];
    if (worker.dead) return;
    switch (event.kind) {
      case Kind::kExtraAskArrives:
        return Answer(event);
      case Kind::kAskArrives:
        Answer(event);
        // Whether an answer comes or is lost, it asks again.
        ScheduleAsk(1 + UpTo(2 * worst_delay_) + worst_delay_,
                    Kind::kAskArrives, event.worker);
        return;
      case Kind::kAnswerArrives:
        if (UpTo(10) == 0) return;  // lost
        worker.granted = event.total;
        worker.version = event.version;
        return MaybeBegin(event.worker);
      case Kind::kStepDone:
        worker.computes = false;
        ++worker.done;
        if (UpTo(2) == 0) {
          ScheduleAsk(UpTo(worst_delay_), Kind::kExtraAskArrives, event.worker);
        }
        return MaybeBegin(event.worker);
      case Kind::kFate:
        return MeetFate(event.worker);
    }
  }

  void Answer(const Event& ask) {
    if (!workers_[ask.worker].live) return;
    ASSERT_TRUE(ledger_.Check(ask.worker, ask.total, ask.started).ok());
    ledger_.Report(ask.worker, ask.total);
    wire::ClaimStepsRequest claim;
    claim.mutable_task()->set_incarnation(ask.worker);
    claim.set_assignment_version(ask.version);
    claim.set_started_steps(ask.started);
    wire::ClaimStepsResponse answer;
    ledger_.Answer(claim, 1 + UpTo(20), CountLive(), answer);
    Schedule(UpTo(worst_delay_), Kind::kAnswerArrives, ask.worker,
             answer.granted_steps(), answer.assignment_version());
  }

  void MaybeBegin(uint64_t id) {
    Worker& worker = workers_[id];
    if (worker.computes || worker.done >= worker.granted) return;
    worker.computes = true;
    if (worker.live) {
      for (const auto& [other, peer] : workers_) {
        if (!peer.live) continue;
        ASSERT_GE(peer.clock(), worker.clock() - bound_)
            << "worker " << id << " begins a step at clock " << worker.clock()
            << ", worker " << other << " is at " << peer.clock();
      }
    }
    Schedule(1 + UpTo(10 * worker.slowness), Kind::kStepDone, id);
  }

  // Dies, or stands still for longer than its lease, or is joined by another.
  void MeetFate(uint64_t id) {
    Worker& worker = workers_[id];
    switch (UpTo(4)) {
      case 0:
        worker.dead = true;
        worker.live = false;
        ledger_.Release(id);
        Join();
        return;
      case 1:
        if (worker.live) {
          worker.live = false;
          ledger_.Release(id);
        } else {
          Enter(id);
        }
        break;
      case 2:
        if (workers_.size() < 12) Join();
        break;
      default:
        break;
    }
    if (!worker.live || UpTo(2) == 0) Schedule(UpTo(500), Kind::kFate, id);
  }

  std::mt19937 random_;
  const int64_t bound_;
  StepLedger ledger_;
  const int worst_delay_;
  int64_t now_ = 0;
  int64_t order_ = 0;
  int64_t count_ = 0;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Worker> workers_;
  std::priority_queue<Event> events_;
};

TEST(BoundedStaleness, RandomSchedulesNeitherExceedTheBoundNorStall) {
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Simulation(seed).Run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace parasol
