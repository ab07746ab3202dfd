#include "base/clock.h"

#include <thread>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(RealClockTest, ItsTimeIsNearTheMachinesAndNeverGoesBack) {
  const absl::Duration apart = Clock::Real().Now() - absl::Now();
  EXPECT_LT(absl::AbsDuration(apart), absl::Hours(1));
  absl::Time last = Clock::Real().Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = Clock::Real().Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(RealClockTest, AWaitEndsWithItsTimeoutOrItsCondition) {
  absl::Mutex mu;
  const bool never = false;
  bool done = false;
  absl::MutexLock lock(&mu);
  const absl::Time start = Clock::Real().Now();
  EXPECT_FALSE(Clock::Real().AwaitWithTimeout(mu, absl::Condition(&never),
                                              absl::Milliseconds(5)));
  EXPECT_GE(Clock::Real().Now() - start, absl::Milliseconds(5));
  for (const absl::Duration none :
       {absl::ZeroDuration(), -absl::Seconds(1), -absl::InfiniteDuration()}) {
    EXPECT_FALSE(
        Clock::Real().AwaitWithTimeout(mu, absl::Condition(&never), none));
  }
  std::thread setter([&] {
    absl::MutexLock lock(&mu);
    done = true;
  });
  EXPECT_TRUE(Clock::Real().AwaitWithTimeout(mu, absl::Condition(&done),
                                             absl::InfiniteDuration()));
  setter.join();
}

TEST(SimulatedClockTest, StandsStillUntilAdvanced) {
  SimulatedClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(3));
}

TEST(RealClockTest, APauseEndsWhenItsTimeHasPassed) {
  const absl::Time begin = Clock::Real().Now();
  Clock::Real().Pause(absl::Milliseconds(20));
  EXPECT_GE(Clock::Real().Now() - begin, absl::Milliseconds(20));
  Clock::Real().Pause(absl::ZeroDuration());
  Clock::Real().Pause(-absl::Seconds(1));
}

TEST(SimulatedClockTest, WaitEndsWhenTheSimulatedTimeoutPasses) {
  SimulatedClock clock;
  absl::Mutex mu;
  const bool never = false;
  std::thread waiter([&] {
    absl::MutexLock lock(&mu);
    EXPECT_FALSE(
        clock.AwaitWithTimeout(mu, absl::Condition(&never), absl::Seconds(10)));
  });
  // Whether the waiter has started or not: an hour is past its deadline only
  // if it starts first, so keep moving until it has ended.
  std::thread mover([&] {
    for (int i = 0; i < 200; ++i) {
      clock.Advance(absl::Hours(1));
      Clock::Real().Pause(absl::Milliseconds(1));
    }
  });
  waiter.join();
  mover.join();
}

TEST(SimulatedClockTest, WaitEndsWhenTheConditionHolds) {
  SimulatedClock clock;
  absl::Mutex mu;
  bool done = false;
  std::thread waiter([&] {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(clock.AwaitWithTimeout(mu, absl::Condition(&done),
                                       absl::InfiniteDuration()));
  });
  {
    absl::MutexLock lock(&mu);
    done = true;
  }
  waiter.join();
}

}  // namespace
}  // namespace parasol
