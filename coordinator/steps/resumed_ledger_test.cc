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

// Batches by the number of a worker's steps that it has started.
using Started = std::map<uint64_t, std::vector<int64_t>>;

// Grants `worker` further steps, and starts them.
void StartSteps(StepLedger& ledger, uint64_t worker, int64_t completed,
                int64_t count, Started& started) {
  std::vector<int64_t>& batches = started[worker];
  const auto before = static_cast<int64_t>(batches.size());
  const int64_t granted = Claim(ledger, worker, count, /*workers=*/1, before);
  const std::vector<int64_t> next = ledger.BatchesOf(worker);
  for (int64_t step = before; step < granted; ++step) {
    batches.push_back(next[step - completed]);
  }
}

WorkerArrival Arrival(int64_t completed, const std::vector<int64_t>& batches,
                      int64_t begin = 0) {
  wire::RegisterRequest request;
  for (size_t i = begin; i < batches.size(); ++i) {
    wire::BatchRange* range = request.add_batch();
    range->set_first(batches[i]);
    range->set_count(1);
  }
  return {.completed = completed, .told = ToldBatches(begin, request.batch())};
}

// A chief is lost at any time behind its checkpoint: with the workers' word for
// it each batch is done once, whatever they were granted since.
TEST(ResumedLedger, BatchesThatWorkersTellAreDoneOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    constexpr int64_t kEnd = 70;
    const std::vector<int64_t> shards = round % 2 == 0
                                            ? std::vector<int64_t>{14}
                                            : std::vector<int64_t>{2, 4, 8};
    const auto some = [&random](int64_t below) {
      return static_cast<int64_t>(random() % below);
    };
    StepLedger before;
    before.SetShards(shards);
    before.SetEnd(kEnd);
    Started started;
    std::map<uint64_t, int64_t> completed;
    for (uint64_t worker = 1; worker <= 3; ++worker) {
      before.Enter(worker, {.shard = static_cast<int>(worker) - 1});
      started[worker];
      completed[worker] = 0;
    }
    durable::CheckpointManifest manifest;
    std::map<uint64_t, int64_t> saved;
    for (int i = 0; i < 12; ++i) {
      const uint64_t worker = 1 + some(3);
      StartSteps(before, worker, completed[worker], 1 + some(4), started);
      const auto most = static_cast<int64_t>(started[worker].size());
      completed[worker] += some(most - completed[worker] + 1);
      before.Report(worker, completed[worker]);
      if (some(4) > 0) continue;
      manifest = ManifestOf(before);
      saved = completed;
    }
    StepLedger::Options options;
    options.has_shards = shards.size() > 1;
    StepLedger after(manifest, options);
    after.SetEnd(kEnd);
    std::map<int64_t, int> times;
    for (const auto& [worker, batches] : started) {
      WorkerArrival arrival =
          Arrival(completed[worker], batches, some(saved[worker] + 1));
      arrival.shard = static_cast<int>(worker) - 1;
      after.Enter(worker, arrival);
    }
    after.SetShards(shards);
    EXPECT_EQ(after.global_step(), completed[1] + completed[2] + completed[3]);
    // Nothing is granted before all have told.
    for (const auto& [worker, batches] : started) {
      Claim(after, worker, /*want=*/0, /*workers=*/3,
            static_cast<int64_t>(batches.size()));
    }
    while (after.global_step() < kEnd) {
      const uint64_t worker = 1 + some(3);
      StartSteps(after, worker, completed[worker], 1 + some(4), started);
      completed[worker] = static_cast<int64_t>(started[worker].size());
      after.Report(worker, completed[worker]);
    }
    for (const auto& [worker, batches] : started) {
      for (const int64_t batch : batches) ++times[batch];
    }
    EXPECT_EQ(times.size(), size_t{kEnd});
    for (const auto& [batch, count] : times) {
      ASSERT_EQ(count, 1) << "batch " << batch;
    }
    EXPECT_EQ(after.doubled_batches(), 0);
  }
}

TEST(ResumedLedger, ABatchThatAnotherWorkerWasGrantedMeanwhileIsDoubled) {
  StepLedger ledger(Manifest(/*step=*/10, /*incarnation=*/1, /*completed=*/10));
  ledger.SetShards({100});
  ledger.SetEnd(100);
  ledger.Enter(2, {});
  EXPECT_EQ(Claim(ledger, 2, 2, 1), 2) << "batches 10 and 11";
  std::vector<int64_t> batches(10);
  batches.insert(batches.end(), {10, 12, 13});
  ledger.Enter(1, Arrival(/*completed=*/12, batches, /*begin=*/10));
  EXPECT_EQ(ledger.global_step(), 11) << "12; worker 2 has 10";
  EXPECT_EQ(ledger.doubled_batches(), 1);
  Claim(ledger, 1, 1, 2, /*started=*/13);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(13, 14, 15, 16, 17, 18))
      << "it keeps what is in flight";
}

TEST(ResumedLedger, StepsWhoseBatchesAreForgottenTakeTheNextOnes) {
  StepLedger ledger(Manifest(/*step=*/10, /*incarnation=*/1, /*completed=*/10));
  ledger.SetShards({100});
  ledger.SetEnd(100);
  std::vector<int64_t> batches(12);
  batches.insert(batches.end(), {40, 41});
  ledger.Enter(1, Arrival(/*completed=*/14, batches, /*begin=*/12));
  EXPECT_EQ(ledger.global_step(), 14);
  Claim(ledger, 1, 1, 1, /*started=*/14);
  EXPECT_EQ(ledger.BatchesOf(1).front(), 12) << "10 and 11 are taken as done";
}

TEST(ResumedLedger, BatchesThatAreForgottenAreNoneOfThoseThatAreTold) {
  StepLedger ledger(Manifest(/*step=*/10, /*incarnation=*/1, /*completed=*/10));
  ledger.SetEnd(100);
  std::vector<int64_t> batches(12);
  batches.insert(batches.end(), {10, 11});
  ledger.Enter(1, Arrival(/*completed=*/14, batches, /*begin=*/12));
  EXPECT_EQ(ledger.global_step(), 14);
  EXPECT_EQ(ledger.doubled_batches(), 0);
}

TEST(ResumedLedger, ABatchFarBehindTheEndIsNotKnown) {
  StepLedger ledger(Manifest(/*step=*/10, /*incarnation=*/1, /*completed=*/10));
  ledger.SetEnd(100);
  std::vector<int64_t> batches(10);
  batches.push_back(int64_t{1} << 50);
  ledger.Enter(1, Arrival(/*completed=*/11, batches, /*begin=*/10));
  EXPECT_EQ(ledger.global_step(), 11);
  Claim(ledger, 1, 1, 1, /*started=*/11);
  EXPECT_EQ(ledger.BatchesOf(1).front(), 11) << "the next one is taken as done";
}

TEST(ResumedLedger, AWorkerIsToldWhatTwoCheckpointsHave) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 5);
  const durable::CheckpointManifest manifest = ManifestOf(ledger);
  ledger.Report(1, 6);
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(1);
  wire::ClaimStepsResponse answer;
  ledger.Answer(claim, 0, 1, answer);
  EXPECT_EQ(answer.saved_steps(), 0);
  ledger.Saved(manifest);
  ledger.Answer(claim, 0, 1, answer);
  EXPECT_EQ(answer.saved_steps(), 0) << "the newest one may be damaged";
  ledger.Saved(manifest);
  ledger.Answer(claim, 0, 1, answer);
  EXPECT_EQ(answer.saved_steps(), 0) << "it was written again";
  ledger.Saved(ManifestOf(ledger));
  ledger.Answer(claim, 0, 1, answer);
  EXPECT_EQ(answer.saved_steps(), 5);
}

TEST(ResumedLedger, AWorkerForgetsNothingIfOneCheckpointStays) {
  StepLedger::Options options;
  options.has_one_checkpoint = true;
  StepLedger ledger(options);
  ledger.SetEnd(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(1);
  wire::ClaimStepsResponse answer;
  for (const int64_t completed : {5, 6, 7}) {
    ledger.Report(1, completed);
    ledger.Saved(ManifestOf(ledger));
    ledger.Answer(claim, 0, 1, answer);
    EXPECT_EQ(answer.saved_steps(), 0);
  }
}

}  // namespace
}  // namespace parasol
