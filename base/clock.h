#ifndef PARASOL_BASE_CLOCK_H_
#define PARASOL_BASE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace parasol {

// Where a server gets the time from and how it waits, so that a test can move
// both by hand. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;

  // Blocks until `condition` holds or `timeout` has passed on this clock.
  // `mu` is held by the caller, and held again on return. Returns whether the
  // condition holds.
  virtual bool AwaitWithTimeout(absl::Mutex& mu,
                                const absl::Condition& condition,
                                absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;

  // The machine's clock; lives as long as the process.
  static Clock& Real();
};

// A clock that stands still until it is told to move. Starts at Unix time 1e9.
class SimulatedClock : public Clock {
 public:
  absl::Time Now() override;
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Moves the time forward; waiters whose timeout has passed wake up.
  void Advance(absl::Duration duration);

 private:
  absl::Mutex now_mu_;
  absl::Time now_ ABSL_GUARDED_BY(now_mu_) = absl::FromUnixSeconds(1000000000);
};

}  // namespace parasol

#endif  // PARASOL_BASE_CLOCK_H_
