#include "base/clock.h"

namespace parasol {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return mu.AwaitWithTimeout(condition, timeout);
  }
};

}  // namespace

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

}  // namespace parasol
