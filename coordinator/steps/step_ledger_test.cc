#include "coordinator/steps/step_ledger.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/testing/ledger_claims.h"
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

TEST(StepLedger, GrantsNothingUntilTheEndIsKnown) {
  StepLedger ledger;
  ledger.Enter(1, {0});
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 0);
  ledger.SetEnd(100);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 8);
}

TEST(StepLedger, GrantsNoMoreThanIsWanted) {
  StepLedger ledger = LedgerTo(1000);
  ledger.Enter(1, {0});
  EXPECT_EQ(Claim(ledger, 1, 5, 1), 5);
}

TEST(StepLedger, WorkersHoldHalfOfAFairShareAtMost) {
  StepLedger ledger = LedgerTo(40);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 10);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 10) << "asked again, holding all of it";
  ledger.Report(1, 10);
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 17) << "30 left: 7 more";
}

TEST(StepLedger, ALimitHoldsStepsBackUntilItRises) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ledger.SetLimit(10);
  for (int64_t granted = 0; granted < 10;) {
    const int64_t now = Claim(ledger, 1, 100, 2);
    ASSERT_GT(now, granted);
    granted = now;
    ledger.Report(1, granted);
  }
  EXPECT_EQ(ledger.global_step(), 10) << "exactly the steps up to it";
  EXPECT_EQ(Claim(ledger, 1, 100, 2), 10);
  EXPECT_EQ(Claim(ledger, 2, 100, 2), 0);
  EXPECT_FALSE(ledger.IsComplete());
  const int64_t before = ledger.news();
  ledger.SetLimit(20);
  EXPECT_NE(ledger.news(), before);
  EXPECT_GT(Claim(ledger, 2, 100, 2), 0);
  ledger.SetLimit(std::nullopt);
  EXPECT_GT(Claim(ledger, 1, 100, 2), 20);
}

TEST(StepLedger, ALimitBelowWhatIsGrantedTakesNothingBack) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ASSERT_EQ(Claim(ledger, 1, 8, 1), 8);
  ledger.SetLimit(0);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 8);
  ledger.Report(1, 8);
  EXPECT_EQ(ledger.global_step(), 8);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 8);
}

TEST(StepLedger, TheLastStepIsGrantedOnce) {
  StepLedger ledger = LedgerTo(1);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  EXPECT_EQ(Claim(ledger, 1, 8, 2), 1);
  EXPECT_EQ(Claim(ledger, 2, 8, 2), 0);
  ledger.Report(1, 1);
  EXPECT_TRUE(ledger.IsComplete());
  EXPECT_EQ(Claim(ledger, 2, 8, 2), 0);
}

TEST(StepLedger, AReportThatIsSentTwiceOrLateCountsOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 5);
  ledger.Report(1, 5);
  ledger.Report(1, 3);
  EXPECT_EQ(ledger.global_step(), 5);
}

TEST(StepLedger, UnfinishedStepsOfALostWorkerAreGrantedAgain) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1);
  ledger.Report(2, 1);
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1) << "the other one holds the last step";
  ledger.Release(1);
  EXPECT_EQ(Claim(ledger, 2, 1, 1), 2);
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatItDidMeanwhile) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  ledger.Enter(1, {6});
  EXPECT_EQ(ledger.global_step(), 6);
}

TEST(StepLedger, AGoneWorkerIsGrantedNothing) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  Claim(ledger, 1, 8, 1);
  ledger.Report(1, 2);
  ledger.Release(1);
  EXPECT_EQ(Claim(ledger, 1, 8, 1), 2);
}

TEST(StepLedger, ANewRunDoesNotCountWhatWasDoneForAnother) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {500});
  EXPECT_EQ(ledger.global_step(), 0);
  ledger.Report(1, 503);
  EXPECT_EQ(ledger.global_step(), 0) << "in flight when it came";
  ASSERT_EQ(Claim(ledger, 1, 3, 1), 506);
  ledger.Report(1, 506);
  EXPECT_EQ(ledger.global_step(), 3);
}

TEST(StepLedger, RemembersBoundedlyManyThatAreGoneForGood) {
  StepLedger ledger = LedgerTo(100);
  for (uint64_t worker = 1; worker <= DepartedWorkers::kMax + 99; ++worker) {
    ledger.Enter(worker, {0});
    ledger.Release(worker);
    ledger.Retire(worker);
  }
  EXPECT_EQ(ledger.Progress().size(), DepartedWorkers::kMax);
}

TEST(StepLedger, WorkersAreGrantedDifferentBatches) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
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
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 2, 2);
  ledger.Report(1, 1);
  ledger.Release(1);
  Claim(ledger, 2, 2, 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(StepLedger, TheLastBatchIsTakenBackFromAWorkerThatMayNotStartIt) {
  StepLedger ledger = LedgerTo(4);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  ASSERT_EQ(Claim(ledger, 1, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(Claim(ledger, 2, 1, 2), 1);
  EXPECT_THAT(ledger.BatchesOf(2), ElementsAre(3));
  EXPECT_THAT(ledger.BatchesOf(1), ElementsAre(0, 1, 2));
}

TEST(StepLedger, AWorkerThatComesBackIsCreditedWithWhatNoOtherHas) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 3, 2);
  ledger.Release(1);
  Claim(ledger, 2, 1, 1);  // batch 0, and four in advance
  ledger.Enter(1, {3});
  EXPECT_EQ(ledger.global_step(), 0) << "another one has these batches";
  EXPECT_GT(Claim(ledger, 1, 1, 2, /*started=*/3), 3);
}

TEST(StepLedger, AWorkerThatIsLostTwiceIsCreditedOnce) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 2, 2);
  ledger.Release(1);
  Claim(ledger, 2, 6, 1);
  ledger.Report(2, 2);
  ASSERT_EQ(ledger.global_step(), 2);
  ledger.Enter(1, {0});
  ledger.Release(1);
  ledger.Enter(1, {2});
  EXPECT_EQ(ledger.global_step(), 2) << "the batches that another has done";
}

TEST(StepLedger, AnAnswerTellsTheBatchesInRanges) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
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

TEST(StepLedger, MoreThanWasGrantedIsRefused) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  ASSERT_EQ(Claim(ledger, 1, 8, 1), 8);
  EXPECT_OK(ledger.Check(1, 8, 8));
  for (const int64_t total : {int64_t{9}, int64_t{1000000}, INT64_MAX}) {
    EXPECT_THAT(ledger.Check(1, total, 0),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("can have completed 0 to 8 steps")));
    EXPECT_THAT(ledger.Check(1, 0, total),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    ledger.Report(1, total);
    EXPECT_EQ(ledger.global_step(), 8) << "a report that was not checked";
  }
  EXPECT_THAT(ledger.Check(1, -1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(StepLedger, AWorkerThatComesBackIsGrantedNothingUntilItHasToldItsSteps) {
  StepLedger ledger = LedgerTo(100);
  ledger.Enter(1, {0});
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(1);
  wire::ClaimStepsResponse first;
  ledger.Answer(claim, /*want=*/4, /*workers=*/2, first);
  ASSERT_EQ(first.granted_steps(), 4);
  claim.set_assignment_version(first.assignment_version());
  claim.set_started_steps(2);
  ledger.Release(1);
  ledger.Enter(1, {0});
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
  ledger.Enter(1, {0});
  wire::ClaimStepsRequest late;
  late.mutable_task()->set_incarnation(1);
  ASSERT_EQ(Claim(ledger, 1, 4, 2), 4);
  ledger.Release(1);
  ledger.Enter(1, {0});
  wire::ClaimStepsResponse answer;
  ledger.Answer(late, /*want=*/4, /*workers=*/2, answer);
  EXPECT_EQ(answer.granted_steps(), 0);
}

TEST(StepLedger, WhoHoldsTheLastStepsIsNamed) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
  Claim(ledger, 1, 1, 2);
  EXPECT_THAT(ledger.Awaited(), IsEmpty()) << "a step is left for others";
  Claim(ledger, 2, 1, 2);
  ledger.Report(2, 1);
  EXPECT_THAT(ledger.Awaited(), ElementsAre(1));
}

TEST(StepLedger, NewsComesWithAStepThatIsFreeAgain) {
  StepLedger ledger = LedgerTo(2);
  ledger.Enter(1, {0});
  ledger.Enter(2, {0});
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
    for (int w = 1; w <= workers; ++w) ledger.Enter(w, {0});
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

// Loses and replaces workers: what they had not reported is done again, and the
// count still ends exactly.
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
    for (uint64_t w : alive) ledger.Enter(w, {0});
    for (int turn = 0; turn < 100000 && !ledger.IsComplete(); ++turn) {
      uint64_t& w = alive[upto(3)];
      if (upto(10) == 0) {
        ledger.Release(w);
        w = next++;
        ledger.Enter(w, {0});
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
