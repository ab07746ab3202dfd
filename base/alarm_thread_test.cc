#include "base/alarm_thread.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kHour = 3'600'000 * kMilli;

class AlarmThreadTest : public testing::Test {
 protected:
  bool AwaitUntil(const bool& condition, int64_t deadline) {
    absl::MutexLock lock(&mu_);
    return AlarmThread::Get().AwaitUntil(mu_, absl::Condition(&condition),
                                         deadline);
  }

  absl::Mutex mu_;
};

TEST_F(AlarmThreadTest, AWaitEndsAtItsDeadlineAndNotBefore) {
  const bool never = false;
  const int64_t deadline = MonotonicNanos() + 20 * kMilli;
  EXPECT_FALSE(AwaitUntil(never, deadline));
  EXPECT_GE(MonotonicNanos(), deadline);
}

TEST_F(AlarmThreadTest, ADeadlineThatHasPassedEndsTheWait) {
  const bool never = false;
  EXPECT_FALSE(AwaitUntil(never, MonotonicNanos()));
  EXPECT_FALSE(AwaitUntil(never, 0));
  EXPECT_FALSE(AwaitUntil(never, -kHour));
}

TEST_F(AlarmThreadTest, AConditionThatHoldsNeedsNoWait) {
  const bool always = true;
  EXPECT_TRUE(AwaitUntil(always, 0));
  EXPECT_TRUE(AwaitUntil(always, MonotonicNanos() + kHour));
}

TEST_F(AlarmThreadTest, AConditionThatComesTrueEndsTheWait) {
  bool done = false;
  std::thread setter([&] {
    absl::MutexLock lock(&mu_);
    done = true;
  });
  EXPECT_TRUE(AwaitUntil(done, MonotonicNanos() + kHour));
  setter.join();
}

TEST_F(AlarmThreadTest, AnEarlierDeadlineIsNotHeldUpByALaterOne) {
  bool done = false;
  std::thread patient([&] { AwaitUntil(done, MonotonicNanos() + kHour); });
  const bool never = false;
  EXPECT_FALSE(AwaitUntil(never, MonotonicNanos() + kMilli));
  {
    absl::MutexLock lock(&mu_);
    done = true;
  }
  patient.join();
}

// The thread that holds the mutex of one wait waits for an alarm itself.
TEST_F(AlarmThreadTest, AWaitWhoseMutexIsHeldForLongHoldsUpNoOther) {
  const bool never = false;
  absl::Mutex inner;
  bool is_held = false;
  std::thread waiter([&] { AwaitUntil(is_held, MonotonicNanos() + kMilli); });
  {
    absl::MutexLock lock(&mu_);
    is_held = true;
    absl::MutexLock inner_lock(&inner);
    // The waiter's alarm comes meanwhile.
    EXPECT_FALSE(AlarmThread::Get().AwaitUntil(inner, absl::Condition(&never),
                                               MonotonicNanos() + 20 * kMilli));
  }
  waiter.join();
}

// Deadlines and conditions race with one another: each wait ends, and a mutex
// that is destroyed after its wait is not used any more.
TEST_F(AlarmThreadTest, ThousandsOfWaitsThatRaceWithTheirConditionsEnd) {
  constexpr int kThreads = 8;
  constexpr int kWaits = 500;
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ended, t] {
      for (int i = 0; i < kWaits; ++i) {
        absl::Mutex mu;
        bool done = false;
        std::thread setter([&] {
          absl::MutexLock lock(&mu);
          done = true;
        });
        {
          absl::MutexLock lock(&mu);
          AlarmThread::Get().AwaitUntil(
              mu, absl::Condition(&done),
              MonotonicNanos() + (i * 7 + t) % 60 * 1000);
        }
        setter.join();
        ++ended;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads * kWaits);
}

}  // namespace
}  // namespace parasol
