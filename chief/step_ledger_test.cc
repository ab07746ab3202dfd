#include "chief/step_ledger.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

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
  EXPECT_EQ(ledger.Grant(1, 8, 1), 0);
  ledger.SetEnd(100);
  EXPECT_EQ(ledger.Grant(1, 8, 1), 8);
}

TEST(StepLedger, GrantsNoMoreThanIsWanted) {
  StepLedger ledger = LedgerTo(1000);
  ledger.Enter(1, 0);
  EXPECT_EQ(ledger.Grant(1, 5, 1), 5);
}

TEST(StepLedger, WorkersHoldHalfOfAFairShareAtMost) {
  StepLedger ledger = LedgerTo(40);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  EXPECT_EQ(ledger.Grant(1, 100, 2), 10);
  EXPECT_EQ(ledger.Grant(1, 100, 2), 10) << "asked again, holding all of it";
  ledger.Report(1, 10);
  EXPECT_EQ(ledger.Grant(1, 100, 2), 17) << "30 left: 7 more";
}

TEST(StepLedger, TheLastStepIsGrantedOnce) {
  StepLedger ledger = LedgerTo(1);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  EXPECT_EQ(ledger.Grant(1, 8, 2), 1);
  EXPECT_EQ(ledger.Grant(2, 8, 2), 0);
  ledger.Report(1, 1);
  EXPECT_TRUE(ledger.IsComplete());
  EXPECT_EQ(ledger.Grant(2, 8, 2), 0);
}

TEST(StepLedger, AReportThatIsSentTwiceOrLateCountsOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Grant(1, 8, 1);
  ledger.Report(1, 5);
  ledger.Report(1, 5);
  ledger.Report(1, 3);
  EXPECT_EQ(ledger.global_step(), 5);
}

TEST(StepLedger, UnfinishedStepsOfALostWorkerAreGrantedAgain) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ASSERT_EQ(ledger.Grant(1, 1, 2), 1);
  ASSERT_EQ(ledger.Grant(2, 1, 2), 1);
  ledger.Report(2, 1);
  ASSERT_EQ(ledger.Grant(2, 1, 2), 1) << "the other one holds the last step";
  ledger.Release(1);
  EXPECT_EQ(ledger.Grant(2, 1, 1), 2);
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatItDidMeanwhile) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Grant(1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  ledger.Enter(1, 6);
  EXPECT_EQ(ledger.global_step(), 6);
}

TEST(StepLedger, AGoneWorkerIsGrantedNothing) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Grant(1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  EXPECT_EQ(ledger.Grant(1, 8, 1), 2);
}

TEST(StepLedger, ARestartedChiefCreditsWhatWasDoneSinceTheCheckpoint) {
  StepLedger ledger(Manifest(/*step=*/50, /*incarnation=*/1,
                             /*completed=*/20));
  ledger.SetEnd(100);
  ledger.Enter(1, 27);
  EXPECT_EQ(ledger.global_step(), 57);
  ledger.Enter(2, 3);
  EXPECT_EQ(ledger.global_step(), 60) << "started after the checkpoint";
  EXPECT_EQ(ledger.Grant(1, 4, 2), 31) << "beyond its own total";
}

TEST(StepLedger, ANewRunDoesNotCountWhatWasDoneForAnother) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 500);
  EXPECT_EQ(ledger.global_step(), 0);
  ledger.Report(1, 503);
  EXPECT_EQ(ledger.global_step(), 3);
}

TEST(StepLedger, ProgressRestoresTheSameLedger) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Grant(1, 8, 1);
  ledger.Report(1, 5);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(ledger.global_step());
  for (const auto& progress : ledger.Progress()) {
    *manifest.add_worker_progress() = progress;
  }
  StepLedger restored(manifest);
  restored.Enter(1, 7);
  EXPECT_EQ(restored.global_step(), 7);
}

TEST(StepLedger, RemembersBoundedlyManyThatAreGone) {
  StepLedger ledger = LedgerTo(100);
  for (uint64_t incarnation = 1; incarnation <= 5000; ++incarnation) {
    ledger.Enter(incarnation, 0);
    ledger.Release(incarnation);
  }
  EXPECT_EQ(ledger.Progress().size(), StepLedger::kMaxGone);
}

TEST(StepLedger, WorkersAreGrantedDifferentBatches) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ledger.Grant(1, 2, 2);
  ledger.Grant(2, 2, 2);
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
  ledger.Grant(1, 2, 2);
  ledger.Report(1, 1);
  ledger.Release(1);
  ledger.Grant(2, 2, 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(StepLedger, TheLastBatchIsTakenBackFromAWorkerThatMayNotStartIt) {
  StepLedger ledger = LedgerTo(4);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ASSERT_EQ(ledger.Grant(1, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(ledger.Grant(2, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(3));
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2));
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatNoOtherHas) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ledger.Grant(1, 3, 2);
  ledger.Release(1);
  ledger.Grant(2, 1, 1);  // batch 0, and four in advance
  ledger.Enter(1, 3);
  EXPECT_EQ(ledger.global_step(), 0) << "another one has these batches";
  EXPECT_GT(ledger.Grant(1, 1, 2), 3);
}

TEST(StepLedger, AWorkerThatIsLostTwiceIsCreditedOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ledger.Grant(1, 2, 2);
  ledger.Release(1);
  ledger.Grant(2, 6, 1);
  ledger.Report(2, 2);
  ASSERT_EQ(ledger.global_step(), 2);
  ledger.Enter(1, 0);
  ledger.Release(1);
  ledger.Enter(1, 2);
  EXPECT_EQ(ledger.global_step(), 2) << "the batches that another has done";
}

TEST(StepLedger, AnAbsurdReportDoesNotKeepTheChiefBusy) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Report(1, INT64_MAX);
  EXPECT_LE(ledger.global_step(), 1 << 24);
}

TEST(StepLedger, AnAnswerTellsTheBatchesInRanges) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, 0);
  ledger.Enter(2, 0);
  ledger.Grant(1, 1, 2);
  ledger.Grant(2, 1, 2);
  ledger.Report(1, 1);
  wire::ClaimStepsResponse response;
  ledger.Answer(1, /*want=*/2, /*workers=*/2, response);
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
  ledger.Grant(1, 1, 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(52, 53, 54, 55, 56));
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
        worker.granted = ledger.Grant(w, upto(20), workers);
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
      if (ledger.Grant(w, 1 + upto(10), 3) > completed[w]) {
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
