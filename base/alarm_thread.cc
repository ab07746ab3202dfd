#include "base/alarm_thread.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace parasol {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
// Time after which an alarm rings that found its mutex taken.
constexpr int64_t kRetryNanos = 500'000;

int64_t NanosOf(const timespec& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

timespec TimeOf(int64_t nanos) {
  return {.tv_sec = nanos / kNanosPerSecond,
          .tv_nsec = nanos % kNanosPerSecond};
}

int OpenTimer() {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (timer >= 0) return timer;
  // The log needs the clock.
  std::perror("timerfd_create");
  std::abort();
}

}  // namespace

int64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return NanosOf(now);
}

AlarmThread& AlarmThread::Get() {
  static auto* alarms = new AlarmThread;
  return *alarms;
}

AlarmThread::AlarmThread() : timer_(OpenTimer()) {
  std::thread([this] { Run(); }).detach();
}

bool AlarmThread::AwaitUntil(absl::Mutex& mu, const absl::Condition& condition,
                             int64_t deadline_nanos) {
  if (condition.Eval()) return true;
  Alarm alarm{.mu = mu};
  Set(deadline_nanos, alarm);
  const auto is_over = [&alarm, &condition] {
    return alarm.rung || condition.Eval();
  };
  mu.Await(absl::Condition(&is_over));
  Cancel(alarm);
  return condition.Eval();
}

void AlarmThread::Run() {
  while (true) {
    uint64_t expirations = 0;
    // An interrupted read is repeated by the loop: nothing is due then.
    (void)!read(timer_, &expirations, sizeof(expirations));
    Ring();
  }
}

void AlarmThread::Ring() {
  absl::MutexLock lock(&mu_);
  const int64_t now = MonotonicNanos();
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    Alarm& alarm = *alarms_.begin()->second;
    alarms_.erase(alarms_.begin());
    // The mutex's holder may itself wait for an alarm: this thread never waits
    // for a mutex of a wait.
    if (alarm.mu.TryLock()) {
      alarm.is_set = false;
      alarm.rung = true;
      alarm.mu.Unlock();
    } else {
      alarm.place = alarms_.emplace(now + kRetryNanos, &alarm);
    }
  }
  Arm();
}

void AlarmThread::Set(int64_t deadline_nanos, Alarm& alarm) {
  absl::MutexLock lock(&mu_);
  alarm.place = alarms_.emplace(deadline_nanos, &alarm);
  alarm.is_set = true;
  if (alarm.place == alarms_.begin()) Arm();
}

void AlarmThread::Cancel(Alarm& alarm) {
  absl::MutexLock lock(&mu_);
  // The thread may wake for it all the same, and finds nothing due.
  if (alarm.is_set) alarms_.erase(alarm.place);
}

void AlarmThread::Arm() {
  if (alarms_.empty()) return;
  // A time of zero would disarm it.
  const int64_t first = std::max<int64_t>(1, alarms_.begin()->first);
  const itimerspec when = {.it_interval = {}, .it_value = TimeOf(first)};
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace parasol

// Abseil's waits go by the time of day, and so do gRPC's, which is built on
// them: the thread of gRPC's timers would sleep an hour longer when the clock
// is set back by an hour, and no call would meet its deadline and no channel
// connect again. Abseil makes them by this function of the C library, in whose
// place the program has this one: the same wait, by the monotonic clock.
extern "C" long syscall(long number, ...) noexcept {
  using Function = long (*)(long, ...);
  // Not a static that is initialized here: to wait for that the library would
  // call this function.
  static std::atomic<Function> known = nullptr;
  Function next = known.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
    known.store(next, std::memory_order_relaxed);
  }
  va_list list;
  va_start(list, number);
  long args[6];
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  timespec until;
  if (number == SYS_futex && (args[1] & FUTEX_CLOCK_REALTIME) != 0 &&
      (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && args[3] != 0) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t left =
        parasol::NanosOf(*reinterpret_cast<const timespec*>(args[3])) -
        parasol::NanosOf(now);
    until =
        parasol::TimeOf(std::max<int64_t>(0, parasol::MonotonicNanos() + left));
    args[1] &= ~FUTEX_CLOCK_REALTIME;
    args[3] = reinterpret_cast<long>(&until);
  }
  return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
