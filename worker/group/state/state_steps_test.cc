#include "worker/group/state/state_steps.h"

#include <atomic>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

bool NeverCancelled() { return false; }

class StateStepsTest : public testing::Test {
 protected:
  // Makes the next step, as a state does.
  absl::Status MakeOne() {
    if (const absl::Status free = steps_.AwaitNoHold(); !free.ok()) return free;
    steps_.Set({.step = steps_.version().step + 1, .epoch = 1});
    return absl::OkStatus();
  }

  SimulatedClock clock_;
  StateSteps steps_{clock_};
};

TEST_F(StateStepsTest, WithoutAStateNothingIsPulledOrHeld) {
  EXPECT_FALSE(steps_.version().is_there());
  EXPECT_THAT(steps_.NotePull(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(steps_.Hold(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(steps_.Await(0, absl::ZeroDuration()), std::nullopt);
}

TEST_F(StateStepsTest, OfTwoVersionsTheLaterStepAndThenTheLaterGroupIsGreater) {
  EXPECT_LT(StateVersion(), (StateVersion{.step = 0}));
  EXPECT_LT((StateVersion{.step = 1, .epoch = 9}),
            (StateVersion{.step = 2, .epoch = 1}));
  EXPECT_LT((StateVersion{.step = 2, .epoch = 1}),
            (StateVersion{.step = 2, .epoch = 2}));
}

TEST_F(StateStepsTest, OtherValuesOfAPulledStepEndTheSteps) {
  steps_.Set({.step = 3, .epoch = 1});
  EXPECT_THAT(steps_.NotePull(), IsOkAndHolds(3));
  steps_.Replace({.step = 3, .epoch = 2}, /*has_other_values=*/false);
  steps_.Replace({.step = 4, .epoch = 2}, /*has_other_values=*/true);
  EXPECT_OK(steps_.ended());
  EXPECT_THAT(steps_.NotePull(), IsOkAndHolds(4));
  steps_.Replace({.step = 4, .epoch = 3}, /*has_other_values=*/true);
  EXPECT_THAT(steps_.ended(), StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("after step 4")));
  EXPECT_EQ(steps_.version(), (StateVersion{.step = 4, .epoch = 3}));
}

TEST_F(StateStepsTest, TheFirstEndCounts) {
  steps_.Set({.step = 1});
  steps_.End(absl::CancelledError("first"));
  steps_.End(absl::InternalError("second"));
  EXPECT_THAT(steps_.Await(1, absl::ZeroDuration()), Optional(IsOk()));
  EXPECT_THAT(steps_.Await(2, absl::InfiniteDuration()),
              Optional(StatusIs(absl::StatusCode::kCancelled)));
  EXPECT_THAT(steps_.AwaitCut(2, NeverCancelled),
              StatusIs(absl::StatusCode::kCancelled, "first"));
}

TEST_F(StateStepsTest, AHoldLastsUntilItsCutOrItsLimit) {
  steps_.Set({.step = 2});
  EXPECT_THAT(steps_.Hold(), IsOkAndHolds(2));
  steps_.EndCut(/*stays=*/false);
  EXPECT_OK(MakeOne());

  EXPECT_THAT(steps_.Hold(), IsOkAndHolds(3));
  clock_.Advance(StateSteps::kHoldLimit);
  EXPECT_OK(MakeOne());
  EXPECT_EQ(steps_.version().step, 4);
}

TEST_F(StateStepsTest, ACutLetsTheStepsBeforeItBeMade) {
  steps_.Set({.step = 0});
  EXPECT_THAT(steps_.Hold(), IsOkAndHolds(0));
  std::thread cuts([&] { EXPECT_OK(steps_.AwaitCut(1, NeverCancelled)); });
  EXPECT_OK(MakeOne());
  cuts.join();
  steps_.EndCut(/*stays=*/true);
  EXPECT_TRUE(steps_.stays());
  steps_.EndThoseThatStay();
  EXPECT_THAT(MakeOne(), StatusIs(absl::StatusCode::kCancelled,
                                  HasSubstr("checkpoint of step 1")));
}

TEST_F(StateStepsTest, NeitherAHoldNorAnotherCutEndsAStay) {
  steps_.Set({.step = 5});
  steps_.EndCut(/*stays=*/true);
  EXPECT_THAT(steps_.Hold(), IsOkAndHolds(5));
  clock_.Advance(2 * StateSteps::kHoldLimit);
  steps_.EndCut(/*stays=*/false);
  EXPECT_TRUE(steps_.stays());
  steps_.GoOn();
  EXPECT_FALSE(steps_.stays());
  EXPECT_OK(MakeOne());
}

TEST_F(StateStepsTest, ACutThatNobodyWantsIsCancelled) {
  steps_.Set({.step = 5});
  std::atomic<bool> is_over = false;
  std::thread cuts([&] {
    EXPECT_THAT(steps_.AwaitCut(6, [] { return true; }),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("chief")));
    is_over = true;
  });
  while (!is_over) clock_.Advance(absl::Seconds(1));
  cuts.join();
}

}  // namespace
}  // namespace parasol
