#include "chief/steps/step_ledger.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/status_matchers.h"
#include "chief/testing/ledger_claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(StepLedger, GrantsNothingUntilTheEndIsKnown) {
  StepLedger ledger;
  ledger.Enter(1, 0);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 0);
  ledger.SetEnd(100);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 8);
}

TEST(StepLedger, GrantsNoMoreThanIsWanted) {
  StepLedger ledger = LedgerTo(1000);
  ledger.Enter(1, 0);
  EXPECT_EQ(Claim(ledger, 1, 5, 1), 5);
}

TEST(StepLedger, WorkersHoldHalfOfAFairShareAtMost) {
  StepLedger ledger = LedgerTo(40);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 10);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 10) << "asked again, holding all of it";
  ledger.Report(1, 10);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 17) << "30 left: 7 more";
}

TEST(StepLedger, TheLastStepIsGrantedOnce) {
  StepLedger ledger = LedgerTo(1);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  EXPECT_EQ(Claim(ledger, 1, 8, 2), 1);
  EXPECT_EQ(Claim(ledger, 2, 8, 2), 0);
  ledger.Report(1, 1);
  EXPECT_TRUE(ledger.IsComplete());
  EXPECT_EQ(Claim(ledger, 2, 8, 2), 0);
}

TEST(StepLedger, AReportThatIsSentTwiceOrLateCountsOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 5);
  ledger.Report(1, 5);
  ledger.Report(1, 3);
  EXPECT_EQ(ledger.global_step(), 5);
}

TEST(StepLedger, UnfinishedStepsOfALostWorkerAreGrantedAgain) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1);
  ledger.Report(2, 1);
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1) << "the other one holds the last step";
  ledger.Release(1);
  EXPECT_EQ(Claim(ledger, 2, 1, 1), 2);
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatItDidMeanwhile) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  ledger.Enter(1, 6);
  EXPECT_EQ(ledger.global_step(), 6);
}

TEST(StepLedger, AGoneWorkerIsGrantedNothing) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 2);
}

TEST(StepLedger, ARestartedChiefCreditsWhatWasDoneSinceTheCheckpoint) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1,
                             /*completed=*/20));
  ledger.SetEnd(100);
  ledger.Enter(1, 27);
  EXPECT_EQ(ledger.global_step(), 57);
  ledger.Enter(2, 3);
  EXPECT_EQ(ledger.global_step(), 60) << "started after the checkpoint";
  EXPECT_EQ(Claim(ledger, 1, 4, 2), 31) << "beyond its own total";
}

TEST(StepLedger, ANewRunDoesNotCountWhatWasDoneForAnother) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 500);
  EXPECT_EQ(ledger.global_step(), 0);
  ledger.Report(1, 503);
  EXPECT_EQ(ledger.global_step(), 0) << "in flight when it came";
  ASSERT_EQ(Claim(ledger, 1, 3, 1), 506);
  ledger.Report(1, 506);
  EXPECT_EQ(ledger.global_step(), 3);
}

TEST(StepLedger, ProgressRestoresTheSameLedger) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 5);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(ledger.global_step());
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest);
  restored.SetEnd(100);
  restored.Enter(1, 7);
  EXPECT_EQ(restored.global_step(), 7);
}

TEST(StepLedger, RemembersBoundedlyManyThatAreGoneForGood) {
  StepLedger ledger = LedgerTo(100);
  for (uint64_t worker = 1; worker <= DepartedWorkers::kMax + 99; ++worker) {
    ledger.Enter(worker, 0);
    ledger.Release(worker);
    ledger.Retire(worker);
  }
  EXPECT_EQ(ledger.Progress().size(), DepartedWorkers::kMax);
}

TEST(StepLedger, WorkersAreGrantedDifferentBatches) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 2, 2);
  Claim(ledger, 2, 2, 2);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2, 3, 4, 5))
      << "four are told in advance";
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(6, 7, 8, 9, 10, 11));
  ledger.Report(1, 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(1, 2, 3, 4, 5));
}

TEST(StepLedger, UnfinishedBatchesOfALostWorkerAreGrantedAgain) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 2, 2);
  ledger.Report(1, 1);
  ledger.Release(1);
  Claim(ledger, 2, 2, 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(StepLedger, TheLastBatchIsTakenBackFromAWorkerThatMayNotStartIt) {
  StepLedger ledger = LedgerTo(4);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(3));
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2));
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatNoOtherHas) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 3, 2);
  ledger.Release(1);
  Claim(ledger, 2, 1, 1);  // batch 0, and four in advance
  ledger.Enter(1, 3);
  EXPECT_EQ(ledger.global_step(), 0) << "another one has these batches";
  EXPECT_GT(Claim(ledger, 1, 1, 2, /*started=*/3), 3);
}

TEST(StepLedger, AWorkerThatIsLostTwiceIsCreditedOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 2, 2);
  ledger.Release(1);
  Claim(ledger, 2, 6, 1);
  ledger.Report(2, 2);
  ASSERT_EQ(ledger.global_step(), 2);
  ledger.Enter(1, 0);
  ledger.Release(1);
  ledger.Enter(1, 2);
  EXPECT_EQ(ledger.global_step(), 2) << "the batches that another has done";
}

TEST(StepLedger, AnAnswerTellsTheBatchesInRanges) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 1, 2);
  Claim(ledger, 2, 1, 2);
  ledger.Report(1, 1);
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(1);
  wire::ClaimStepsResponse response;
  ledger.Answer(claim, /*want=*/0, /*workers=*/2, response);
  claim.set_assignment_version(response.assignment_version());
  response.Clear();
  ledger.Answer(claim, /*want=*/2, /*workers=*/2, response);
  EXPECT_EQ(response.granted_steps(), 3);
  EXPECT_EQ(response.steps_before_batches(), 1);
  ASSERT_EQ(response.batch_size(), 2);
  EXPECT_EQ(response.batch(0).first(), 1);
  EXPECT_EQ(response.batch(0).count(), 4);
  EXPECT_EQ(response.batch(1).first(), 10);
  EXPECT_EQ(response.batch(1).count(), 2);
}

TEST(StepLedger, AResumedRunGoesOnWithTheNextBatches) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  ledger.SetEnd(100);
  ledger.Enter(1, 22);
  Claim(ledger, 1, 1, 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(52, 53, 54, 55, 56));
}

// A restarted chief that knows `incarnations` workers that are gone, as well as
// worker 1, which is live and has done 40 of 50 steps.
StepLedger RestartedLedger(int incarnations) {
  StepLedger before = LedgerTo(1000);
  before.Enter(1, 0);
  while (before.global_step() < 40) {
    before.Report(1, Claim(before, 1, 8, 1));
  }
  for (int i = 0; i < incarnations; ++i) {
    before.Enter(100 + i, 0);
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

TEST(StepLedger, ALiveWorkerIsCreditedOnceHoweverManyIncarnationsTheRunHad) {
  for (const int incarnations : {0, 1024, 5000}) {
    SCOPED_TRACE(incarnations);
    StepLedger ledger = RestartedLedger(incarnations);
    const int64_t before = ledger.global_step();
    // Others come and go before it comes back.
    for (int i = 0; i < 3000; ++i) {
      ledger.Enter(100000 + i, 0);
      ledger.Release(100000 + i);
      ledger.Retire(100000 + i);
    }
    ledger.Enter(1, before + 3);
    EXPECT_EQ(ledger.global_step(), before + 3);
  }
}

TEST(StepLedger, ARunThatHasForgottenWorkersCreditsNoUnknownOne) {
  StepLedger ledger = RestartedLedger(DepartedWorkers::kMax);
  const int64_t before = ledger.global_step();
  ledger.Enter(77, 20);
  EXPECT_EQ(ledger.global_step(), before);
}

TEST(StepLedger, MoreThanWasGrantedIsRefused) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ASSERT_EQ(Claim(ledger, 1, 8, 1), 8);
  EXPECT_OK(ledger.Check(1, 8, 8));
  for (const int64_t total : {int64_t{9}, int64_t{1000000}, INT64_MAX}) {
    EXPECT_THAT(ledger.Check(1, total, 0),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("can have completed 0 to 8 steps")));
    EXPECT_THAT(ledger.Check(1, 0, total),
                StatusIs(absl::StatusCode::kInvalidArgument));
    ledger.Report(1, total);
    EXPECT_EQ(ledger.global_step(), 8) << "a report that was not checked";
  }
  EXPECT_THAT(ledger.Check(1, -1, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StepLedger, ARestartedChiefRefusesMoreThanTheEndAllows) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  ledger.SetEnd(100);
  const int64_t most = 20 + 50 + StepLedger::kMaxUnfinished;
  EXPECT_OK(ledger.Check(1, most, 0));
  EXPECT_THAT(ledger.Check(1, most + 1, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ledger.Check(2, 1000000, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ledger.Enter(1, 30);
  EXPECT_THAT(ledger.Check(1, 31 + StepLedger::kMaxUnfinished, 0),
              StatusIs(absl::StatusCode::kInvalidArgument))
      << "once it is back, no more than what it holds";
}

TEST(StepLedger, TotalsOfARestartedChiefCountWhenTheEndIsKnown) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1, /*completed=*/20));
  EXPECT_OK(ledger.Check(1, 25, 0));
  ledger.Enter(1, 25);
  ledger.Enter(2, 1000000);
  EXPECT_EQ(ledger.global_step(), 50);
  EXPECT_EQ(ledger.Progress()[0].completed_steps(), 20);
  ledger.SetEnd(100);
  EXPECT_EQ(ledger.global_step(), 55);
  EXPECT_OK(ledger.Check(1, 25, 0));
  EXPECT_THAT(ledger.Check(2, 1000000, 1000000),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the job ends at step 100")));
}

TEST(StepLedger, AWorkerThatComesBackIsGrantedNothingUntilItHasToldItsSteps) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(1);
  wire::ClaimStepsResponse first;
  ledger.Answer(claim, /*want=*/4, /*workers=*/2, first);
  ASSERT_EQ(first.granted_steps(), 4);
  claim.set_assignment_version(first.assignment_version());
  claim.set_started_steps(2);
  ledger.Release(1);
  ledger.Enter(1, 0);
  wire::ClaimStepsResponse second;
  ledger.Answer(claim, 4, 2, second);
  EXPECT_NE(second.assignment_version(), first.assignment_version());
  EXPECT_EQ(second.granted_steps(), 0);
  EXPECT_EQ(second.batch_size(), 0);
  claim.set_assignment_version(second.assignment_version());
  claim.set_started_steps(3);
  wire::ClaimStepsResponse third;
  ledger.Answer(claim, 1, 2, third);
  EXPECT_EQ(third.granted_steps(), 4) << "three in flight, and one";
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ledger.Report(1, 3);
  EXPECT_EQ(ledger.global_step(), 3);
}

TEST(StepLedger, ALateClaimOfAnOldGrantIsGrantedNothing) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  wire::ClaimStepsRequest late;
  late.mutable_task()->set_incarnation(1);
  ASSERT_EQ(Claim(ledger, 1, 4, 2), 4);
  ledger.Release(1);
  ledger.Enter(1, 0);
  wire::ClaimStepsResponse answer;
  ledger.Answer(late, /*want=*/4, /*workers=*/2, answer);
  EXPECT_EQ(answer.granted_steps(), 0);
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
  ledger.Enter(worker, 0);
  for (int64_t done = 0; !ledger.IsComplete();) {
    const int64_t granted = Claim(ledger, worker, 3, 1);
    const std::vector<int64_t> batches = ledger.BatchesOf(worker);
    rest.insert(rest.end(), batches.begin(), batches.begin() + granted - done);
    ledger.Report(worker, done = granted);
  }
  std::sort(rest.begin(), rest.end());
  return rest;
}

TEST(StepLedger, AResumedRunDoesTheUnfinishedBatchesAndThoseBehindThem) {
  StepLedger ledger = LedgerTo(20);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 2, 2);  // 0, 1, and 2 to 5 in advance
  Claim(ledger, 2, 3, 2);  // 6, 7, 8, and 9 to 12 in advance
  ledger.Report(2, 2);
  StepLedger resumed(ManifestOf(ledger));
  resumed.SetEnd(20);
  EXPECT_THAT(Rest(resumed, 9), ElementsAre(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12,
                                            13, 14, 15, 16, 17, 18, 19));
}

TEST(StepLedger, AResumedRunOfSeveralShardsDoesWhatIsLeftOfEach) {
  StepLedger ledger = LedgerTo(12);
  ledger.SetShards({4, 2, 6});
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ledger.SetShardOf(1, 1);
  ledger.SetShardOf(2, 2);
  Claim(ledger, 1, 1, 2);  // 4
  ledger.Report(1, 1);
  Claim(ledger, 2, 1, 2);
  StepLedger resumed(ManifestOf(ledger));
  resumed.SetEnd(12);
  resumed.Enter(8, 0);
  resumed.SetShards({4, 2, 6});
  EXPECT_THAT(Rest(resumed, 9), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11));
}

TEST(StepLedger, UnfinishedBatchesThatCanNotBeAreIgnored) {
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

TEST(StepLedger, WhoHoldsTheLastStepsIsNamed) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 1, 2);
  EXPECT_THAT(ledger.Awaited(), IsEmpty()) << "a step is left for others";
  Claim(ledger, 2, 1, 2);
  ledger.Report(2, 1);
  EXPECT_THAT(ledger.Awaited(), ElementsAre(1));
}

TEST(StepLedger, NewsComesWithAStepThatIsFreeAgain) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  Claim(ledger, 1, 1, 2);
  Claim(ledger, 2, 1, 2);
  const int64_t before = ledger.news();
  ledger.Report(2, 1);
  EXPECT_EQ(ledger.news(), before);
  ledger.Release(1);
  EXPECT_NE(ledger.news(), before);
}

// Workers that do nothing but what they were granted, in any interleaving and
// with messages sent twice, complete exactly the end's number of steps.
TEST(StepLedger, RandomInterleavingsEndExactlyAtTheEnd) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto upto = [&random](int n) { return static_cast<int>(random() % n); };
    const int workers = 1 + upto(6);
    StepLedger ledger = LedgerTo(1 + upto(300));
    struct Totals {
      int64_t completed = 0;
      int64_t granted = 0;
    };
    std::map<uint64_t, Totals> totals;
    for (int w = 1; w <= workers; ++w) ledger.Enter(w, 0);
    int64_t done = 0;
    std::set<int64_t> batches;
    for (int turn = 0; turn < 100000 && !ledger.IsComplete(); ++turn) {
      const uint64_t w = 1 + upto(workers);
      Totals& worker = totals[w];
      if (worker.completed < worker.granted && upto(3) > 0) {
        EXPECT_TRUE(batches.insert(ledger.BatchesOf(w).front()).second);
        ++worker.completed;
        ++done;
      }
      for (int sends = 1 + upto(2); sends > 0; --sends) {
        ledger.Report(w, worker.completed);
        worker.granted = Claim(ledger, w, upto(20), workers);
      }
      int64_t granted = 0;
      for (const auto& [incarnation, t] : totals) granted += t.granted;
      ASSERT_LE(granted, *ledger.end_step());
    }
    EXPECT_TRUE(ledger.IsComplete());
    EXPECT_EQ(done, *ledger.end_step());
    EXPECT_EQ(*batches.rbegin(), done - 1);
    EXPECT_EQ(ledger.global_step(), *ledger.end_step());
  }
}

// The same with workers that are lost and replaced: what they had not reported
// is done again, and the count still ends exactly.
TEST(StepLedger, RandomLossesNeverStallOrOvershootWhatIsReported) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto upto = [&random](int n) { return static_cast<int>(random() % n); };
    StepLedger ledger = LedgerTo(200);
    std::vector<uint64_t> alive = {1, 2, 3};
    std::map<uint64_t, int64_t> completed;
    uint64_t next = 4;
    std::set<int64_t> reported;
    for (uint64_t w : alive) ledger.Enter(w, 0);
    for (int turn = 0; turn < 100000 && !ledger.IsComplete(); ++turn) {
      uint64_t& w = alive[upto(3)];
      if (upto(10) == 0) {
        ledger.Release(w);
        w = next++;
        ledger.Enter(w, 0);
      }
      if (Claim(ledger, w, 1 + upto(10), 3) > completed[w]) {
        EXPECT_TRUE(reported.insert(ledger.BatchesOf(w).front()).second);
        ++completed[w];
      }
      ledger.Report(w, completed[w]);
    }
    EXPECT_EQ(ledger.global_step(), 200);
    EXPECT_EQ(reported.size(), 200u);
    EXPECT_EQ(*reported.rbegin(), 199);
  }
}

}  // namespace
}  // namespace parasol
