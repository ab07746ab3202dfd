#include "parameters/client/payload_lane_retry.h"

#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Returns the pauses in minutes between failures at `now` and the attempts
// that follow, each of which fails at once.
std::vector<int> PausesOf(PayloadLaneRetry& retry, absl::Time now,
                          int attempts) {
  std::vector<int> pauses;
  for (int i = 0; i < attempts; ++i) {
    retry.NoteFailure(now);
    int minutes = 0;
    while (!retry.IsDue(now)) {
      now += absl::Minutes(1);
      ++minutes;
    }
    pauses.push_back(minutes);
    retry.Begin();
  }
  return pauses;
}

TEST(PayloadLaneRetryTest, IsNeverDueWithoutAFailure) {
  PayloadLaneRetry retry(absl::Minutes(1));
  EXPECT_FALSE(retry.IsDue(kStart));
  retry.NoteSuccess();
  EXPECT_FALSE(retry.IsDue(kStart + absl::Hours(1000)));
}

TEST(PayloadLaneRetryTest, PausesGrowToSixteenTimesTheFirst) {
  PayloadLaneRetry retry(absl::Minutes(1));
  EXPECT_THAT(PausesOf(retry, kStart, 7), ElementsAre(1, 2, 4, 8, 16, 16, 16));
}

TEST(PayloadLaneRetryTest, FailuresOfOtherStreamsDoNotPutAnAttemptOff) {
  PayloadLaneRetry retry(absl::Minutes(1));
  retry.NoteFailure(kStart);
  retry.NoteFailure(kStart + absl::Seconds(59));
  EXPECT_TRUE(retry.IsDue(kStart + absl::Minutes(1)));
  // Neither do they make the next pause longer.
  retry.Begin();
  EXPECT_THAT(PausesOf(retry, kStart, 1), ElementsAre(2));
}

TEST(PayloadLaneRetryTest, AnAttemptUnderWayIsNotDue) {
  PayloadLaneRetry retry(absl::Minutes(1));
  retry.NoteFailure(kStart);
  retry.Begin();
  EXPECT_FALSE(retry.IsDue(kStart + absl::Hours(1000)));
}

TEST(PayloadLaneRetryTest, ALaneThatWorksMakesTheNextPauseShort) {
  PayloadLaneRetry retry(absl::Minutes(1));
  PausesOf(retry, kStart, 4);
  retry.NoteSuccess();
  EXPECT_THAT(PausesOf(retry, kStart, 2), ElementsAre(1, 2));
}

TEST(PayloadLaneRetryTest, ResetForgetsTheAttemptAndThePauses) {
  PayloadLaneRetry retry(absl::Minutes(1));
  PausesOf(retry, kStart, 4);
  retry.NoteFailure(kStart);
  retry.Reset();
  EXPECT_FALSE(retry.IsDue(kStart + absl::Hours(1000)));
  EXPECT_THAT(PausesOf(retry, kStart, 2), ElementsAre(1, 2));
}

}  // namespace
}  // namespace parasol
