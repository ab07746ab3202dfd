#include "loop/peers/peer_watch.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(PeerWatchTest, AWaitBeyondTheLimitIsGivenUp) {
  SimulatedClock clock;
  absl::Notification given_up;
  std::atomic<int> times = 0;
  PeerWatch watch({.awaited = [] { return "worker/1"; },
                   .give_up =
                       [&] {
                         if (++times == 1) given_up.Notify();
                       },
                   .limit = absl::Seconds(30)},
                  clock);
  watch.Begin("a sum");
  const absl::Time begun = clock.Now();
  const absl::Time deadline = Clock::Real().Now() + absl::Minutes(1);
  while (!given_up.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
    ASSERT_LT(Clock::Real().Now(), deadline);
    clock.Advance(absl::Seconds(10));
  }
  EXPECT_GE(clock.Now() - begun, absl::Seconds(30));
}

}  // namespace
}  // namespace parasol
