#include "base/clock.h"

#include <thread>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(SimulatedClockTest, StandsStillUntilAdvanced) {
  SimulatedClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(3));
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
      absl::MutexLock lock(&mu);
      Clock::Real().AwaitWithTimeout(mu, absl::Condition(&never),
                                     absl::Milliseconds(1));
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
