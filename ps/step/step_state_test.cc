#include "ps/step/step_state.h"

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/step/latch.h"

namespace parasol {
namespace {

using Entry = StepState::Entry;
using Origin = StepState::Origin;

constexpr size_t kWanted = 3;

// Waits at one place.
struct Waiting {
  std::optional<Latch::Outcome> outcome;
  std::shared_ptr<Latch> latch = std::make_shared<Latch>(
      1, [this](const Latch::Outcome& o) { outcome = o; });
};

Entry Enter(StepState& state, const StepPush& push) {
  return state.Enter(push, kWanted);
}

void Complete(StepState& state) {
  Released released;
  state.Complete(released);
}

void NotifyAt(StepState& state, int64_t updates, Waiting& waiting) {
  Released released;
  state.NotifyAt(updates, waiting.latch, released);
}

bool GoOnAt(StepState& state, int64_t updates) {
  Released released;
  return state.GoOnAt(updates, released);
}

void Push(StepState& state, const StepPush& push, Waiting& waiting) {
  Released released;
  state.Enter(push, kWanted);
  state.NotifyWhenComplete(push, waiting.latch, released);
}

TEST(StepStateTest, AGradientCountsOncePerReplicaWhoeverComputedIt) {
  StepState state(0, Origin::kInitial);
  EXPECT_EQ(Enter(state, {0, 2}), Entry::kNew);
  EXPECT_EQ(Enter(state, {0, 2}), Entry::kDuplicate);
  EXPECT_EQ(Enter(state, {0, 0}), Entry::kNew);
  EXPECT_EQ(state.collected(), 2u);
}

TEST(StepStateTest, AfterItsStepAGradientIsADuplicateOrStale) {
  StepState state(0, Origin::kInitial);
  Enter(state, {0, 1});
  Complete(state);
  EXPECT_EQ(Enter(state, {0, 1}), Entry::kDuplicate);
  EXPECT_EQ(Enter(state, {0, 0}), Entry::kStale);
  Complete(state);
  EXPECT_EQ(Enter(state, {0, 1}), Entry::kStale);
}

TEST(StepStateTest, AGradientOfALaterStepIsRefusedOrToBeSentAgain) {
  EXPECT_THAT(StepState(3, Origin::kInitial).CheckNotAhead(4),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(StepState(3, Origin::kInitial).CheckNotAhead(3));
  EXPECT_THAT(StepState(3, Origin::kRestored).CheckNotAhead(4),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(StepState(3, Origin::kRestored).CheckNotAhead(3));
}

TEST(StepStateTest, ARestoredOneGoesOnWhereItIsToldAndDropsWhatItHas) {
  StepState state(3, Origin::kRestored);
  Waiting push, pull, later;
  Push(state, {3, 0}, push);
  NotifyAt(state, 5, pull);
  NotifyAt(state, 6, later);
  EXPECT_FALSE(GoOnAt(state, 3));
  EXPECT_TRUE(GoOnAt(state, 5));
  EXPECT_EQ(state.updates(), 5);
  EXPECT_EQ(state.collected(), 0u);
  EXPECT_TRUE(push.outcome.has_value() && push.outcome->dropped);
  EXPECT_TRUE(pull.outcome.has_value());
  EXPECT_FALSE(later.outcome.has_value());
}

TEST(StepStateTest, NoRequestMovesARestoredOne) {
  StepState state(3, Origin::kRestored);
  Waiting pull;
  NotifyAt(state, int64_t{1} << 40, pull);
  EXPECT_EQ(state.CheckNotAhead(int64_t{1} << 40).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(state.updates(), 3);
  EXPECT_FALSE(pull.outcome.has_value());
}

TEST(StepStateTest, OneThatWasNotRestoredGoesOnByItsUpdatesAlone) {
  StepState state(3, Origin::kInitial);
  EXPECT_FALSE(GoOnAt(state, 5));
  EXPECT_EQ(state.updates(), 3);
}

TEST(StepStateTest, AStepWhoseUpdateFailedIsNotDueAgain) {
  StepState state(0, Origin::kInitial);
  state.Enter({.step = 0, .replica = 0}, 1);
  EXPECT_TRUE(state.IsDue(1));
  Released released;
  state.Abandon(absl::ResourceExhaustedError("no room"), released);
  state.Hold(INT64_MAX);
  EXPECT_FALSE(state.IsDue(1));
}

TEST(StepStateTest, AStepIsDueWithItsGradientsUnlessItIsHeld) {
  StepState state(0, Origin::kInitial);
  Enter(state, {0, 1});
  Enter(state, {0, 2});
  EXPECT_FALSE(state.IsDue(kWanted));
  Enter(state, {0, 0});
  EXPECT_TRUE(state.IsDue(kWanted));
  state.Hold(0);
  EXPECT_FALSE(state.IsDue(kWanted));
  EXPECT_EQ(Enter(state, {0, 3}), Entry::kStale);
  EXPECT_EQ(Enter(state, {0, 2}), Entry::kDuplicate);
  state.Hold(1);
  EXPECT_TRUE(state.IsDue(kWanted));
}

TEST(StepStateTest, WaitersAreToldAtTheirUpdateAndNotBefore) {
  StepState state(0, Origin::kInitial);
  Waiting now, next, after;
  NotifyAt(state, 0, now);
  NotifyAt(state, 1, next);
  NotifyAt(state, 2, after);
  EXPECT_TRUE(now.outcome.has_value());
  EXPECT_FALSE(next.outcome.has_value());
  Complete(state);
  EXPECT_TRUE(next.outcome.has_value());
  EXPECT_FALSE(after.outcome.has_value());
}

TEST(StepStateTest, ACaptureIsTakenAtExactlyItsUpdate) {
  StepState state(0, Origin::kInitial);
  Waiting capture;
  int64_t captured_at = -1;
  {
    Released released;
    state.SnapshotAt(
        2, [&] { captured_at = state.updates(); }, capture.latch, released);
  }
  Complete(state);
  EXPECT_EQ(captured_at, -1);
  Complete(state);
  EXPECT_EQ(captured_at, 2);
  Complete(state);
  EXPECT_EQ(captured_at, 2);
  EXPECT_OK(capture.outcome->status);
}

TEST(StepStateTest, ACaptureOfWhatIsOverIsAborted) {
  StepState state(3, Origin::kRestored);
  Waiting late, jumped;
  const auto never = [] { FAIL(); };
  {
    Released released;
    state.SnapshotAt(2, never, late.latch, released);
    state.SnapshotAt(4, never, jumped.latch, released);
  }
  EXPECT_THAT(late.outcome->status, StatusIs(absl::StatusCode::kAborted));
  GoOnAt(state, 5);
  EXPECT_THAT(jumped.outcome->status, StatusIs(absl::StatusCode::kAborted));
}

TEST(StepStateTest, OnceItIsAbandonedNobodyWaits) {
  StepState state(0, Origin::kInitial);
  Waiting before, capture, after, late_capture;
  NotifyAt(state, 1, before);
  {
    Released released;
    state.SnapshotAt(
        1, [] { FAIL(); }, capture.latch, released);
    state.Abandon(absl::UnavailableError("gone"), released);
    state.SnapshotAt(
        1, [] { FAIL(); }, late_capture.latch, released);
  }
  NotifyAt(state, 1, after);
  for (const Waiting* waiting : {&before, &capture, &after, &late_capture}) {
    ASSERT_TRUE(waiting->outcome.has_value());
    EXPECT_THAT(waiting->outcome->status,
                StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(state.CheckNotAhead(0), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
