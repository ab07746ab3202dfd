#include "base/clock.h"

#include <fstream>

#include "base/alarm_thread.h"

namespace parasol {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override {
    return start_ + absl::Nanoseconds(MonotonicNanos() - start_nanos_);
  }

  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (timeout > kForEver) {
      mu.Await(condition);
      return true;
    }
    // Lets go of the mutex for a moment.
    if (timeout <= absl::ZeroDuration()) {
      return mu.AwaitWithTimeout(condition, absl::ZeroDuration());
    }
    return AlarmThread::Get().AwaitUntil(
        mu, condition, MonotonicNanos() + absl::ToInt64Nanoseconds(timeout));
  }

 private:
  static constexpr absl::Duration kForEver = absl::Hours(24 * 365 * 100);

  const absl::Time start_ = absl::Now();
  const int64_t start_nanos_ = MonotonicNanos();
};

}  // namespace

void Clock::Pause(absl::Duration duration) {
  absl::Mutex mu;
  const bool never = false;
  absl::MutexLock lock(&mu);
  AwaitWithTimeout(mu, absl::Condition(&never), duration);
}

Clock& Clock::Real() {
  static auto* clock = new RealClock;
  return *clock;
}

absl::Time SimulatedClock::Now() {
  absl::MutexLock lock(&now_mu_);
  return now_;
}

bool SimulatedClock::AwaitWithTimeout(absl::Mutex& mu,
                                      const absl::Condition& condition,
                                      absl::Duration timeout) {
  const absl::Time deadline = Now() + timeout;
  // The simulated time is not guarded by `mu`, so the mutex can't wait for it:
  // look again every (real) millisecond.
  while (!mu.AwaitWithTimeout(condition, absl::Milliseconds(1))) {
    if (Now() >= deadline) return condition.Eval();
  }
  return true;
}

void SimulatedClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&now_mu_);
  now_ += duration;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

absl::Duration SinceBoot() { return absl::Nanoseconds(MonotonicNanos()); }

}  // namespace parasol
