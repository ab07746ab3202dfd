#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/steps/step_ledger.h"
#include "coordinator/testing/ledger_claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StepLedger LedgerTo(int64_t end_step) {
  StepLedger ledger;
  ledger.SetEnd(end_step);
  return ledger;
}

durable::CheckpointManifest Manifest(int64_t step, uint64_t incarnation,
                                     int64_t completed) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  durable::WorkerProgress* progress = manifest.add_worker_progress();
  progress->set_incarnation(incarnation);
  progress->set_completed_steps(completed);
  return manifest;
}

TEST(ResumedLedger, ARestartedChiefCreditsWhatWasDoneSinceTheCheckpoint) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1,
                             /*completed=*/20));
  ledger.SetEnd(100);
  ledger.Enter(1, {27});
  EXPECT_EQ(ledger.global_step(), 57);
  ledger.Enter(2, {3});
  EXPECT_EQ(ledger.global_step(), 60) << "started after the checkpoint";
  EXPECT_EQ(Claim(ledger, 1, 4, 2), 31) << "beyond its own total";
}

TEST(ResumedLedger, ProgressRestoresTheSameLedger) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 5);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(ledger.global_step());
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest);
  restored.SetEnd(100);
  restored.Enter(1, {7});
  EXPECT_EQ(restored.global_step(), 7);
}

TEST(ResumedLedger, AResumedRunGoesOnWithTheNextBatches) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  ledger.SetEnd(100);
  ledger.Enter(1, {22});
  Claim(ledger, 1, 1, 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(52, 53, 54, 55, 56));
}

// A restarted chief that knows `incarnations` workers that are gone, as well as
// worker 1, which is live and has done 40 of 50 steps.
StepLedger RestartedLedger(int incarnations) {
  StepLedger before = LedgerTo(1000);
  before.Enter(1, {0});
  while (before.global_step() < 40) {
    before.Report(1, Claim(before, 1, 8, 1));
  }
  for (int i = 0; i < incarnations; ++i) {
    before.Enter(100 + i, {0});
    before.Release(100 + i);
    before.Retire(100 + i);
  }
  durable::CheckpointManifest manifest;
  manifest.set_global_step(before.global_step());
  for (const auto& progress : before.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger ledger(manifest);
  ledger.SetEnd(1000);
  return ledger;
}

TEST(ResumedLedger, ALiveWorkerIsCreditedOnceHoweverManyIncarnationsTheRunHad) {
  for (const int incarnations : {0, 1024, 5000}) {
    SCOPED_TRACE(incarnations);
    StepLedger ledger = RestartedLedger(incarnations);
    const int64_t before = ledger.global_step();
    // Others come and go before it comes back.
    for (int i = 0; i < 3000; ++i) {
      ledger.Enter(100000 + i, {0});
      ledger.Release(100000 + i);
      ledger.Retire(100000 + i);
    }
    ledger.Enter(1, {before + 3});
    EXPECT_EQ(ledger.global_step(), before + 3);
  }
}

TEST(ResumedLedger, ARunThatHasForgottenWorkersCreditsNoUnknownOne) {
  StepLedger ledger = RestartedLedger(DepartedWorkers::kMax);
  const int64_t before = ledger.global_step();
  ledger.Enter(77, {20});
  EXPECT_EQ(ledger.global_step(), before);
}

TEST(ResumedLedger, ARestartedChiefRefusesMoreThanTheEndAllows) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  ledger.SetEnd(100);
  const int64_t most = 20 + 50 + StepLedger::kMaxUnfinished;
  EXPECT_OK(ledger.Check(1, most, 0));
  EXPECT_THAT(ledger.Check(1, most + 1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(ledger.Check(2, 1000000, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ledger.Enter(1, {30});
  EXPECT_THAT(ledger.Check(1, 31 + StepLedger::kMaxUnfinished, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition))
      << "once it is back, no more than what it holds";
}

TEST(ResumedLedger, TotalsOfARestartedChiefCountWhenTheEndIsKnown) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  EXPECT_OK(ledger.Check(1, 25, 0));
  ledger.Enter(1, {25});
  ledger.Enter(2, {1000000});
  EXPECT_EQ(ledger.global_step(), 50);
  EXPECT_EQ(ledger.Progress()[0].completed_steps(), 20);
  ledger.SetEnd(100);
  EXPECT_EQ(ledger.global_step(), 55);
  EXPECT_OK(ledger.Check(1, 25, 0));
  EXPECT_THAT(ledger.Check(2, 1000000, 1000000),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job ends at step 100")));
}

durable::CheckpointManifest ManifestOf(const StepLedger& ledger) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(ledger.global_step());
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  for (const auto& span : ledger.Unfinished()) {
    *manifest.add_unfinished_batch() = span;
  }
  return manifest;
}

// Returns the batches that a worker computes up to the end.
std::vector<int64_t> Rest(StepLedger& ledger, uint64_t worker) {
  std::vector<int64_t> rest;
  ledger.Enter(worker, {0});
  for (int64_t done = 0; !ledger.IsComplete();) {
    const int64_t granted = Claim(ledger, worker, 3, 1);
    const std::vector<int64_t> batches = ledger.BatchesOf(worker);
    rest.insert(rest.end(), batches.begin(), batches.begin() + granted - done);
    ledger.Report(worker, done = granted);
  }
  std::sort(rest.begin(), rest.end());
  return rest;
}

TEST(ResumedLedger, AResumedRunDoesTheUnfinishedBatchesAndThoseBehindThem) {
  StepLedger ledger = LedgerTo(20);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 2, 2);  // 0, 1, and 2 to 5 in advance
  Claim(ledger, 2, 3, 2);  // 6, 7, 8, and 9 to 12 in advance
  ledger.Report(2, 2);
  StepLedger resumed(ManifestOf(ledger));
  resumed.SetEnd(20);
  EXPECT_THAT(Rest(resumed, 9), ElementsAre(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12,
                                            13, 14, 15, 16, 17, 18, 19));
}

TEST(ResumedLedger, AResumedRunOfSeveralShardsDoesWhatIsLeftOfEach) {
  StepLedger ledger = LedgerTo(12);
  ledger.SetShards({4, 2, 6});
  ledger.Enter(1, {.shard = 1});
  ledger.Enter(2, {.shard = 2});
  Claim(ledger, 1, 1, 2);  // 4
  ledger.Report(1, 1);
  Claim(ledger, 2, 1, 2);
  StepLedger resumed(ManifestOf(ledger));
  resumed.SetEnd(12);
  resumed.Enter(8, {0});
  resumed.SetShards({4, 2, 6});
  EXPECT_THAT(Rest(resumed, 9), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11));
}

TEST(ResumedLedger, UnfinishedBatchesThatCanNotBeAreIgnored) {
  for (const int64_t count : {int64_t{-1}, int64_t{3}, INT64_MAX}) {
    durable::CheckpointManifest manifest = Manifest(5, 1, 5);
    durable::BatchSpan* span = manifest.add_unfinished_batch();
    span->set_first(6);
    span->set_count(count);
    StepLedger ledger(manifest);
    ledger.SetEnd(8);
    EXPECT_THAT(Rest(ledger, 9), ElementsAre(5, 6, 7)) << count;
  }
}

}  // namespace
}  // namespace parasol
