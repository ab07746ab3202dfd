// A process under set_clock.cc: its clock is set back and forward while it
// waits.

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

void SetClock(absl::Duration offset) {
  const int64_t nanos = absl::ToInt64Nanoseconds(offset);
  const int file = open(std::getenv("PARASOL_CLOCK_OFFSET"), O_WRONLY);
  ASSERT_GE(file, 0);
  ASSERT_EQ(pwrite(file, &nanos, sizeof(nanos), 0), sizeof(nanos));
  close(file);
}

absl::Time TimeOfDay() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return absl::TimeFromTimespec(now);
}

class SetClockTest : public testing::Test {
 protected:
  SetClockTest() { SetClock(absl::ZeroDuration()); }
  ~SetClockTest() override { SetClock(absl::ZeroDuration()); }
};

TEST_F(SetClockTest, MovesTheTimeOfDayAndNoOther) {
  const absl::Time day = TimeOfDay();
  const absl::Time before = Clock::Real().Now();
  SetClock(absl::Hours(24));
  EXPECT_GE(TimeOfDay() - day, absl::Hours(24));
  EXPECT_LT(Clock::Real().Now() - before, absl::Hours(1));
  SetClock(-absl::Hours(24));
  EXPECT_LT(TimeOfDay() - day, -absl::Hours(23));
}

// gRPC's timers are such waits (base/alarm_thread.cc). Without the program's
// own part abseil_wait.cc waits for the hour.
TEST_F(SetClockTest, AbseilsWaitsAreNotLongerWhenItIsSetBack) {
  absl::Mutex mu;
  const bool never = false;
  absl::Notification began;
  absl::Notification ended;
  std::thread abseils([&] {
    absl::MutexLock lock(&mu);
    began.Notify();
    mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(100));
    ended.Notify();
  });
  began.WaitForNotification();
  {
    const absl::MutexLock lock(&mu);  // it waits
  }
  SetClock(-absl::Hours(1));
  ended.WaitForNotification();
  abseils.join();
}

}  // namespace
}  // namespace parasol
