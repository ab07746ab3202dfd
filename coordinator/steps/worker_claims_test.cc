#include "coordinator/steps/worker_claims.h"

#include <memory>

#include "coordinator/steps/step_ledger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kWorker = 20;
constexpr absl::Duration kLimit = absl::Minutes(5);

wire::ClaimStepsRequest ClaimAt(int64_t completed, int64_t started,
                                int64_t granted) {
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(kWorker);
  claim.set_completed_steps(completed);
  claim.set_started_steps(started);
  claim.set_granted_steps(granted);
  return claim;
}

class WorkerClaimsTest : public testing::Test {
 protected:
  // Sets the worker aside, which holds steps from 2 to 4.
  void SetAside() {
    claims_.Take(ClaimAt(2, 3, 4));
    claims_.Answered(ClaimAt(2, 3, 4), /*holds_steps=*/true, now_);
    now_ += kLimit;
    ASSERT_THAT(claims_.SetAside(kLimit, now_), ElementsAre(kWorker));
  }

  absl::Time now_ = absl::FromUnixSeconds(1000000);
  WorkerClaims claims_{kStillNamed};
};

TEST_F(WorkerClaimsTest, AWorkerWithoutAStepInFlightIsIdle) {
  EXPECT_FALSE(claims_.IsIdle(kWorker));
  claims_.Take(ClaimAt(2, 2, 4));
  EXPECT_TRUE(claims_.IsIdle(kWorker));
  EXPECT_EQ(claims_.num_idle(), 1);
  claims_.Take(ClaimAt(2, 3, 4));
  EXPECT_FALSE(claims_.IsIdle(kWorker));
  EXPECT_EQ(claims_.num_idle(), 0);
}

TEST_F(WorkerClaimsTest, TheLastClaimSaysHowFarAWorkerIs) {
  EXPECT_FALSE(claims_.IsAnyBefore(5));
  claims_.Take(ClaimAt(4, 5, 5));
  EXPECT_TRUE(claims_.IsAnyBefore(5));
  claims_.Take(ClaimAt(5, 5, 5));
  EXPECT_FALSE(claims_.IsAnyBefore(5));
}

TEST_F(WorkerClaimsTest, HoldsStepsWhileThePlanSaysSo) {
  StepLedger plan;
  plan.SetEnd(10);
  plan.Enter(kWorker, {});
  EXPECT_FALSE(claims_.HoldSteps(plan));
  claims_.Take(ClaimAt(0, 0, 0));
  EXPECT_FALSE(claims_.HoldSteps(plan));
  wire::ClaimStepsResponse answer;
  plan.Answer(ClaimAt(0, 0, 0), 1, 1, answer);
  wire::ClaimStepsRequest claim = ClaimAt(0, 0, 0);
  claim.set_assignment_version(answer.assignment_version());
  plan.SetShards({10});
  plan.Answer(claim, 1, 1, answer);
  EXPECT_TRUE(claims_.HoldSteps(plan));
  claims_.Forget(kWorker);
  EXPECT_FALSE(claims_.HoldSteps(plan)) << "a worker that is gone";
}

TEST_F(WorkerClaimsTest, AWorkerThatCompletesNoneIsNamedThenSetAside) {
  claims_.Take(ClaimAt(2, 3, 4));
  claims_.Answered(ClaimAt(2, 3, 4), true, now_);
  EXPECT_THAT(claims_.Still(now_), IsEmpty());
  now_ += kStillNamed;
  EXPECT_THAT(claims_.Still(now_), ElementsAre(kWorker));
  EXPECT_THAT(claims_.SetAside(kLimit, now_), IsEmpty());
  now_ += kLimit;
  EXPECT_THAT(claims_.SetAside(kLimit, now_), ElementsAre(kWorker));
  EXPECT_THAT(claims_.SetAside(kLimit, now_), IsEmpty()) << "once";
  EXPECT_THAT(claims_.Still(now_), ElementsAre(kWorker)) << "named on";
}

TEST_F(WorkerClaimsTest, AWorkerThatHoldsNoneMayRest) {
  claims_.Answered(ClaimAt(4, 4, 4), false, now_);
  EXPECT_THAT(claims_.SetAside(kLimit, now_ + kLimit), IsEmpty());
}

TEST_F(WorkerClaimsTest, MeasuresAnewWhenAllHaveWaited) {
  claims_.Answered(ClaimAt(2, 3, 4), true, now_);
  now_ += kLimit;
  claims_.StartOver(now_);
  EXPECT_THAT(claims_.SetAside(kLimit, now_), IsEmpty());
}

TEST_F(WorkerClaimsTest, ResumesOnceItHoldsNoneAndAMomentHasPassed) {
  SetAside();
  EXPECT_FALSE(claims_.Resume(ClaimAt(4, 4, 4), now_)) << "others come first";
  now_ += absl::Seconds(1);
  EXPECT_FALSE(claims_.Resume(ClaimAt(3, 4, 4), now_)) << "one is in flight";
  EXPECT_FALSE(claims_.Resume(ClaimAt(3, 3, 4), now_)) << "it holds one";
  EXPECT_TRUE(claims_.Resume(ClaimAt(4, 4, 4), now_));
  EXPECT_FALSE(claims_.Resume(ClaimAt(4, 4, 4), now_)) << "it is back";
}

TEST_F(WorkerClaimsTest, AWorkerThatRegistersOrIsGoneIsSetAsideNoMore) {
  SetAside();
  claims_.Welcome(kWorker);
  EXPECT_THAT(claims_.Still(now_), IsEmpty());
  SetAside();
  claims_.Forget(kWorker);
  EXPECT_THAT(claims_.Still(now_), IsEmpty());
}

}  // namespace
}  // namespace parasol
