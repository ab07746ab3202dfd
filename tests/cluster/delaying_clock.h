#ifndef PARASOL_TESTS_CLUSTER_DELAYING_CLOCK_H_
#define PARASOL_TESTS_CLUSTER_DELAYING_CLOCK_H_

#include <cstdint>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// The machine's clock, as on a slow machine: each Now() waits for a random
// time, up to `longest`. A training loop calls it a few times a step.
// Thread-safe.
class DelayingClock : public Clock {
 public:
  DelayingClock(uint32_t seed, absl::Duration longest)
      : longest_(longest), random_(seed) {}

  absl::Time Now() override {
    absl::Duration delay;
    {
      absl::MutexLock lock(&mu_);
      delay = longest_ * (static_cast<double>(random_()) / random_.max());
    }
    Clock::Real().Pause(delay);
    return Clock::Real().Now();
  }

  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return Clock::Real().AwaitWithTimeout(mu, condition, timeout);
  }

 private:
  const absl::Duration longest_;
  absl::Mutex mu_;
  std::mt19937 random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_DELAYING_CLOCK_H_
