// A process under set_clock.cc without anything of Parasol: a wait of Abseil's
// lasts longer when its clock is set back. Ends with 0 if it does.

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace {

constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 300'000'000};

void SetClock(int64_t nanos) {
  const int file = open(std::getenv("PARASOL_CLOCK_OFFSET"), O_WRONLY);
  if (pwrite(file, &nanos, sizeof(nanos), 0) != sizeof(nanos)) std::abort();
  close(file);
}

}  // namespace

int main() {
  absl::Mutex mu;
  const bool never = false;
  absl::Notification began;
  absl::Notification ended;
  std::thread waiter([&] {
    absl::MutexLock lock(&mu);
    began.Notify();
    mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(100));
    ended.Notify();
  });
  began.WaitForNotification();
  {
    const absl::MutexLock lock(&mu);  // it waits
  }
  SetClock(-3600 * int64_t{1'000'000'000});
  nanosleep(&kPause, nullptr);
  const bool waits = !ended.HasBeenNotified();
  SetClock(0);
  waiter.join();
  if (!waits) std::fputs("the wait ended at its time\n", stderr);
  return waits ? 0 : 1;
}
