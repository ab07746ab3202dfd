#ifndef PARASOL_BASE_ALARM_THREAD_H_
#define PARASOL_BASE_ALARM_THREAD_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// Returns the nanoseconds since an arbitrary moment, by the machine's clock
// that nobody sets (CLOCK_MONOTONIC).
int64_t MonotonicNanos();

// A thread that ends timed waits on absl::Mutex by the monotonic clock. Abseil
// itself computes a moment of the real-time clock, by its own reading of that,
// and a wait that a signal interrupts is made again until then: one that the
// clock is set back in could last an hour longer. What libraries wait for by
// Abseil, gRPC's timers above all, goes by the monotonic clock but for such a
// signal: see syscall() in alarm_thread.cc. Thread-safe.
class AlarmThread {
 public:
  // Returns the process's thread, which is started by the first call and never
  // ends.
  static AlarmThread& Get();

  // Blocks until `condition` holds or MonotonicNanos() has reached
  // `deadline_nanos`. Returns true if the condition holds. The caller holds
  // `mu`, and holds it again on return.
  bool AwaitUntil(absl::Mutex& mu, const absl::Condition& condition,
                  int64_t deadline_nanos) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

 private:
  struct Alarm;
  using Alarms = std::multimap<int64_t, Alarm*>;
  // The end of one wait. Lives on the waiting thread's stack.
  struct Alarm {
    absl::Mutex& mu;
    bool rung = false;  // guarded by `mu`
    // Guarded by AlarmThread::mu_.
    bool is_set = false;
    Alarms::iterator place = {};
  };

  AlarmThread();
  void Run();
  // Rings the alarms whose deadlines have passed.
  void Ring();
  void Set(int64_t deadline_nanos, Alarm& alarm);
  // Ends the thread's use of the alarm.
  void Cancel(Alarm& alarm);
  // Lets the thread wake for the first alarm.
  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int timer_;  // a timerfd
  // Taken with the mutex of a wait held; under it, such a mutex is only tried.
  absl::Mutex mu_;
  Alarms alarms_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_BASE_ALARM_THREAD_H_
