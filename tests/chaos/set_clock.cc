// A library for LD_PRELOAD that sets a process's clock: CLOCK_REALTIME is off
// by the nanoseconds in the file $PARASOL_CLOCK_OFFSET (8 bytes, little
// endian), which may change at any time. Waits until a moment of that clock
// (futexes, as Abseil's) end as the kernel ends them when a clock is set: later
// where it was set back. The monotonic clock is as it is.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Between two looks of a thread that waits at whether the clock was set.
constexpr int64_t kLook = 20'000'000;

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

const std::atomic<int64_t>* OpenOffset() {
  static const std::atomic<int64_t> none = 0;
  const char* const path = std::getenv("PARASOL_CLOCK_OFFSET");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &none;
  void* const page = mmap(nullptr, sizeof(none), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return page == MAP_FAILED ? &none
                            : static_cast<const std::atomic<int64_t>*>(page);
}

int64_t Offset() {
  static const std::atomic<int64_t>* const offset = OpenOffset();
  return offset->load(std::memory_order_relaxed);
}

int GetTime(clockid_t clock, timespec* time) {
  static const auto get = Next<int(clockid_t, timespec*)>("clock_gettime");
  return get(clock, time);
}

int64_t NanosOf(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}

timespec TimeOf(int64_t nanos) {
  return {.tv_sec = nanos / kSecond, .tv_nsec = nanos % kSecond};
}

// Returns the time of day of the machine, which nobody sets.
int64_t MachineNanos() {
  timespec now;
  GetTime(CLOCK_REALTIME, &now);
  return NanosOf(now);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const int result = GetTime(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) {
    *time = TimeOf(NanosOf(*time) + Offset());
  }
  return result;
}

extern "C" int gettimeofday(timeval* time, void*) {
  const int64_t now = MachineNanos() + Offset();
  *time = {.tv_sec = now / kSecond, .tv_usec = now % kSecond / 1000};
  return 0;
}

extern "C" time_t time(time_t* time) {
  const time_t now = (MachineNanos() + Offset()) / kSecond;
  if (time != nullptr) *time = now;
  return now;
}

extern "C" long syscall(long number, ...) {
  // As in base/alarm_thread.cc.
  static std::atomic<long (*)(long, ...)> known = nullptr;
  auto* call = known.load(std::memory_order_relaxed);
  if (call == nullptr) {
    call = Next<long(long, ...)>("syscall");
    known.store(call, std::memory_order_relaxed);
  }
  va_list more;
  va_start(more, number);
  long args[6];
  for (long& arg : args) arg = va_arg(more, long);
  va_end(more);
  const long operation = args[1];
  const bool is_wait = number == SYS_futex &&
                       (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
                       (operation & FUTEX_CLOCK_REALTIME) != 0 && args[3] != 0;
  if (!is_wait) {
    return call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
  }
  const int64_t until = NanosOf(*reinterpret_cast<const timespec*>(args[3]));
  while (true) {
    const int64_t now = MachineNanos();
    const int64_t left = until - (now + Offset());
    const timespec turn = TimeOf(now + std::clamp<int64_t>(left, 0, kLook));
    const long result =
        call(number, args[0], args[1], args[2], &turn, args[4], args[5]);
    if (result != -1 || errno != ETIMEDOUT || left <= kLook) return result;
  }
}
