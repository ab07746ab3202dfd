#include "ml/input/object/attempts.h"

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// A clock on which pauses take no time but their own.
class PausingClock final : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                        absl::Duration timeout) override {
    Advance(timeout);
    return condition.Eval();
  }
};

class AttemptsTest : public testing::Test {
 protected:
  // Makes attempts that take `each` and fail, but for the one after `failures`.
  absl::Status Make(absl::Duration each, int failures) {
    made_ = 0;
    return Attempts(clock_).Make([&] {
      clock_.Advance(each);
      return ++made_ > failures ? absl::OkStatus()
                                : absl::UnavailableError("s3://b/x: busy");
    });
  }

  PausingClock clock_;
  int made_ = 0;
};

TEST_F(AttemptsTest, WhatFailsAtOnceIsTriedEightTimesInHalfAMinute) {
  const absl::Time begin = clock_.Now();
  EXPECT_OK(Make(absl::Seconds(1), 7));
  EXPECT_EQ(made_, 8);
  EXPECT_THAT(Make(absl::ZeroDuration(), 100),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::EndsWith("busy; given up after 8 attempts")));
  EXPECT_EQ(made_, 8);
  EXPECT_LT(clock_.Now() - begin, absl::Seconds(60));
}

TEST_F(AttemptsTest, AServerThatDoesNotAnswerIsWaitedForForMinutesAlone) {
  EXPECT_THAT(Make(absl::Minutes(2), 100),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("given up after 3 attempts, which took 6m")));
  EXPECT_EQ(made_, 3);
  EXPECT_OK(Make(absl::Minutes(2), 2));
  EXPECT_OK(Make(absl::Minutes(20), 2)) << "a large file";
}

}  // namespace
}  // namespace parasol
