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

constexpr uint64_t kWorker = 7;
constexpr uint64_t kOther = 8;

// Waits at one place.
struct Waiting {
  std::optional<Latch::Outcome> outcome;
  std::shared_ptr<Latch> latch = std::make_shared<Latch>(
      1, [this](const Latch::Outcome& o) { outcome = o; });
};

Entry Enter(StepState& state, const StepPush& push) {
  Released released;
  return state.Enter(push, released);
}

void Complete(StepState& state) {
  Released released;
  state.Complete(released);
}

void NotifyAt(StepState& state, int64_t updates, uint64_t worker,
              Waiting& waiting) {
  Released released;
  state.NotifyAt(updates, worker, waiting.latch, released);
}

void Push(StepState& state, const StepPush& push, Waiting& waiting) {
  Released released;
  state.Enter(push, released);
  state.NotifyWhenComplete(push, waiting.latch, released);
}

TEST(StepStateTest, AGradientCountsOncePerReplicaWhoeverComputedIt) {
  StepState state(0, Origin::kInitial);
  EXPECT_EQ(Enter(state, {0, 2, kWorker}), Entry::kNew);
  EXPECT_EQ(Enter(state, {0, 2, kOther}), Entry::kDuplicate);
  EXPECT_EQ(Enter(state, {0, 0, kWorker}), Entry::kNew);
  EXPECT_EQ(state.collected(), 2u);
}

TEST(StepStateTest, AfterItsStepAGradientIsADuplicateOrStale) {
  StepState state(0, Origin::kInitial);
  Enter(state, {0, 1, kWorker});
  Complete(state);
  EXPECT_EQ(Enter(state, {0, 1, kWorker}), Entry::kDuplicate);
  EXPECT_EQ(Enter(state, {0, 0, kOther}), Entry::kStale);
  Complete(state);
  EXPECT_EQ(Enter(state, {0, 1, kWorker}), Entry::kStale);
}

TEST(StepStateTest, OnlyARestoredOneTakesAGradientOfALaterStep) {
  EXPECT_THAT(StepState(3, Origin::kInitial).CheckNotAhead(4),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(StepState(3, Origin::kInitial).CheckNotAhead(3));
  EXPECT_OK(StepState(3, Origin::kRestored).CheckNotAhead(4));
}

TEST(StepStateTest, ARestoredOneJumpsAndDropsWhatItHas) {
  StepState state(3, Origin::kRestored);
  Waiting early, late;
  Push(state, {5, 0, kWorker}, early);
  EXPECT_EQ(state.updates(), 5);
  Push(state, {6, 1, kOther}, late);
  EXPECT_EQ(state.updates(), 6);
  EXPECT_EQ(state.collected(), 1u);
  ASSERT_TRUE(early.outcome.has_value());
  EXPECT_TRUE(early.outcome->dropped);
  EXPECT_FALSE(late.outcome.has_value());
}

TEST(StepStateTest, ARestoredOneJumpsToWhatAnAcknowledgedWorkerWaitsFor) {
  StepState state(3, Origin::kRestored);
  Waiting push, pull;
  Push(state, {5, 0, kWorker}, push);
  NotifyAt(state, 6, kOther, pull);
  EXPECT_EQ(state.updates(), 6);
  EXPECT_TRUE(pull.outcome.has_value());
  EXPECT_TRUE(push.outcome.has_value() && push.outcome->dropped);
}

TEST(StepStateTest, ARestoredOneWaitsForTheStepThatThePullerIsIn) {
  StepState state(3, Origin::kRestored);
  Waiting push, pull;
  Push(state, {5, 0, kWorker}, push);
  NotifyAt(state, 6, kWorker, pull);
  EXPECT_EQ(state.updates(), 5);
  EXPECT_FALSE(pull.outcome.has_value());
  Complete(state);
  EXPECT_TRUE(pull.outcome.has_value());
  EXPECT_TRUE(push.outcome.has_value() && !push.outcome->dropped);
}

TEST(StepStateTest, WaitersAreToldAtTheirUpdateAndNotBefore) {
  StepState state(0, Origin::kInitial);
  Waiting now, next, after;
  NotifyAt(state, 0, kWorker, now);
  NotifyAt(state, 1, kWorker, next);
  NotifyAt(state, 2, kWorker, after);
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
  Enter(state, {5, 0, kWorker});
  EXPECT_THAT(jumped.outcome->status, StatusIs(absl::StatusCode::kAborted));
}

TEST(StepStateTest, OnceItIsAbandonedNobodyWaits) {
  StepState state(0, Origin::kInitial);
  Waiting before, capture, after, late_capture;
  NotifyAt(state, 1, kWorker, before);
  {
    Released released;
    state.SnapshotAt(
        1, [] { FAIL(); }, capture.latch, released);
    state.Abandon(absl::UnavailableError("gone"), released);
    state.SnapshotAt(
        1, [] { FAIL(); }, late_capture.latch, released);
  }
  NotifyAt(state, 1, kWorker, after);
  for (const Waiting* waiting : {&before, &capture, &after, &late_capture}) {
    ASSERT_TRUE(waiting->outcome.has_value());
    EXPECT_THAT(waiting->outcome->status,
                StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(state.CheckNotAhead(0), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
