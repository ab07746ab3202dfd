// The ledger over a set that grows: no batch is granted that there is not, and
// each is done.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/steps/step_ledger.h"
#include "coordinator/testing/ledger_claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kEndless = int64_t{1} << 50;

StepLedger EndlessLedger() {
  StepLedger ledger;
  ledger.SetEnd(kEndless);
  return ledger;
}

TEST(FollowedLedger, GrantsNoBatchBehindTheOnesThatThereAre) {
  StepLedger ledger = EndlessLedger();
  ledger.SetBatches(0);
  ledger.Enter(1, {0});
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 0);
  EXPECT_THAT(ledger.BatchesOf(1), IsEmpty());
  const int64_t before = ledger.news();
  ledger.SetBatches(3);
  EXPECT_NE(ledger.news(), before) << "a claim that waits is answered";
  EXPECT_EQ(Claim(ledger, 1, 1, 1), 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2))
      << "and none ahead of them";
  EXPECT_FALSE(ledger.IsComplete());
}

TEST(FollowedLedger, AWorkerWithoutStepsGetsTheBatchesAheadOfAnother) {
  StepLedger ledger = EndlessLedger();
  ledger.SetBatches(3);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(2));
}

TEST(FollowedLedger, NobodyIsAwaitedForWantOfData) {
  StepLedger ledger = EndlessLedger();
  ledger.SetBatches(1);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  EXPECT_EQ(Claim(ledger, 2, 1, 2), 0);
  EXPECT_THAT(ledger.Awaited(), IsEmpty());
}

TEST(FollowedLedger, NobodyIsAwaitedForWantOfDataWithABound) {
  StepLedger::Options options;
  options.bound = 1;
  StepLedger ledger(options);
  ledger.SetEnd(kEndless);
  ledger.SetBatches(2);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  for (const int64_t step : {1, 2}) {
    ASSERT_EQ(Claim(ledger, 1, 1, 2, step - 1), step);
    ledger.Report(1, step);
  }
  EXPECT_THAT(ledger.Awaited(), IsEmpty());
  ledger.SetBatches(8);
  EXPECT_THAT(ledger.Awaited(), ElementsAre(2));
}

TEST(FollowedLedger, ARestartedChiefBelievesNoMoreThanThereWasToDo) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(50);
  StepLedger ledger(manifest);
  ledger.SetEnd(kEndless);
  ledger.SetBatches(60);
  EXPECT_OK(ledger.Check(1, 10, 0));
  EXPECT_THAT(ledger.Check(1, 11 + StepLedger::kMaxUnfinished, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Workers and chiefs over a set that grows: workers keep the batches of their
// steps in flight, go and come back, and the chief is lost.
class Schedule {
 public:
  explicit Schedule(int seed) : random_(seed) {
    ledger_.emplace(OptionsOf());
    Begin();
  }

  void Run() {
    for (int turn = 0; turn < 400; ++turn) {
      switch (Draw(12)) {
        case 0:
          batches_ += Draw(6);
          ledger_->SetBatches(batches_);
          break;
        case 1:
          if (Draw(4) == 0) Lose(1 + Draw(3));
          break;
        case 2:
          if (Draw(4) == 0) RestartChief();
          break;
        default:
          Step(1 + Draw(3));
      }
    }
    for (int turn = 0; ledger_->global_step() < batches_; ++turn) {
      ASSERT_LT(turn, 100000) << "nothing goes on";
      Step(1 + Draw(3));
    }
    for (int64_t batch = 0; batch < batches_; ++batch) {
      EXPECT_EQ(done_[batch], 1) << batch;
    }
    EXPECT_EQ(ledger_->global_step(), batches_);
  }

 private:
  struct Worker {
    int64_t started = 0;
    int64_t completed = 0;
    std::vector<int64_t> batches;  // of its steps, from its first one
  };

  int64_t Draw(int64_t below) { return random_() % below; }
  StepLedger::Options OptionsOf() {
    StepLedger::Options options;
    options.first_version = 1000 * ++chiefs_;
    return options;
  }
  void Begin() {
    ledger_->SetEnd(kEndless);
    ledger_->SetBatches(batches_);
  }

  // A worker claims, starts what it is granted, and completes some.
  void Step(uint64_t id) {
    Worker& worker = workers_[id];
    if (!is_there_.contains(id)) {
      ledger_->Enter(id, ArrivalOf(worker));
      is_there_.insert(id);
    }
    const int64_t granted =
        Claim(*ledger_, id, Draw(5), static_cast<int>(is_there_.size()),
              worker.started);
    const std::vector<int64_t> batches = ledger_->BatchesOf(id);
    for (const int64_t batch : batches) ASSERT_LT(batch, batches_);
    worker.batches.resize(worker.completed);
    worker.batches.insert(worker.batches.end(), batches.begin(), batches.end());
    const int64_t held = granted - worker.started;
    if (held > 0) worker.started += Draw(held + 1);
    const int64_t in_flight = worker.started - worker.completed;
    for (int64_t i = in_flight > 0 ? Draw(in_flight + 1) : 0; i > 0; --i) {
      ++done_[worker.batches[worker.completed++]];
    }
    ledger_->Report(id, worker.completed);
  }

  WorkerArrival ArrivalOf(const Worker& worker) {
    wire::RegisterRequest request;
    for (int64_t i = 0; i < worker.started; ++i) {
      wire::BatchRange* range = request.add_batch();
      range->set_first(worker.batches[i]);
      range->set_count(1);
    }
    WorkerArrival arrival = {.completed = worker.completed};
    arrival.told = ToldBatches(0, request.batch());
    return arrival;
  }

  // One that stands still loses its lease with nothing in flight, and is back.
  void Lose(uint64_t id) {
    Worker& worker = workers_[id];
    if (!is_there_.contains(id)) return;
    while (worker.completed < worker.started) {
      ++done_[worker.batches[worker.completed++]];
    }
    ledger_->Report(id, worker.completed);
    ledger_->Release(id);
    is_there_.erase(id);
  }

  // All workers are back before the next chief grants anything.
  void RestartChief() {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(ledger_->global_step());
    for (const auto& entry : ledger_->Progress()) {
      *manifest.add_worker_progress() = entry;
    }
    for (const auto& span : ledger_->Unfinished()) {
      *manifest.add_unfinished_batch() = span;
    }
    for (uint64_t id = 1; id <= 3; ++id) Step(id);
    ledger_.emplace(manifest, OptionsOf());
    Begin();
    for (auto& [id, worker] : workers_) {
      worker.batches.resize(worker.started);
      ledger_->Enter(id, ArrivalOf(worker));
      Claim(*ledger_, id, 0, 3, worker.started);
    }
  }

  std::mt19937 random_;
  int64_t chiefs_ = 0;
  int64_t batches_ = 0;
  std::optional<StepLedger> ledger_;
  std::map<uint64_t, Worker> workers_;
  std::set<uint64_t> is_there_;
  std::map<int64_t, int> done_;
};

TEST(FollowedLedger, EachBatchIsDoneOnceOverRandomSchedules) {
  for (int seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Schedule(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace parasol
