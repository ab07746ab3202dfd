#include "cluster/inspection/clock_offset.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

const absl::Time kHere = absl::FromUnixSeconds(1'000'000'000);
constexpr absl::Duration kAhead = absl::Seconds(3700);

absl::Time After(double seconds) { return kHere + absl::Seconds(seconds); }

// An answer that was given `given` seconds after the question.
void Ask(ClockOffset& offset, double sent, double given, double received) {
  offset.Observe(After(sent), After(received), After(sent + given) + kAhead);
}

TEST(ClockOffsetTest, IsOffByHalfOfTheDelayAtMost) {
  ClockOffset offset;
  Ask(offset, 0, .9, 1);
  EXPECT_EQ(offset.delay(), absl::Seconds(1));
  EXPECT_LE(absl::AbsDuration(offset.ahead() - kAhead), absl::Seconds(.5));
  EXPECT_GT(absl::AbsDuration(offset.ahead() - kAhead), absl::Seconds(.3));
}

TEST(ClockOffsetTest, TheFastestAnswerCounts) {
  ClockOffset offset;
  Ask(offset, 0, .4, .5);
  Ask(offset, 1, .001, 1.002);
  Ask(offset, 2, .9, 3);
  EXPECT_EQ(offset.delay(), absl::Seconds(.002));
  EXPECT_LE(absl::AbsDuration(offset.ahead() - kAhead), absl::Seconds(.001));
}

TEST(ClockOffsetTest, AnOldAnswerGivesWayAsClocksDrift) {
  ClockOffset offset;
  Ask(offset, 0, .001, .002);
  Ask(offset, 1000, .01, 1000.02);
  EXPECT_LE(absl::AbsDuration(offset.delay() - absl::Seconds(.02)),
            absl::Microseconds(1));
}

TEST(ClockOffsetTest, AnAnswerBeforeItsQuestionIsNone) {
  ClockOffset offset;
  Ask(offset, 10, 0, 9);
  EXPECT_EQ(offset.ahead(), absl::ZeroDuration());
}

}  // namespace
}  // namespace parasol
