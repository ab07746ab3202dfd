#ifndef PARASOL_BASE_CLOCK_H_
#define PARASOL_BASE_CLOCK_H_

#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace parasol {

// Source of the time, and of waiting, for a server. A test can replace it and
// move the time by hand. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;

  // Blocks until `condition` holds or `timeout` has passed on this clock. The
  // caller holds `mu`, and holds it again on return. Returns true if the
  // condition holds.
  virtual bool AwaitWithTimeout(absl::Mutex& mu,
                                const absl::Condition& condition,
                                absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;

  // Blocks for `duration` on this clock. A thread that may be told something
  // meanwhile awaits a condition instead.
  void Pause(absl::Duration duration);

  // Returns the machine's monotonic clock, counted from the time of day at its
  // first use: a clock that is set moves nothing. Lives as long as the process.
  static Clock& Real();
};

// A clock whose time only Advance() moves. Starts at Unix time 1e9.
class SimulatedClock : public Clock {
 public:
  absl::Time Now() override;
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Moves the time forward by `duration` and wakes waiters whose timeout has
  // passed.
  void Advance(absl::Duration duration);

 private:
  absl::Mutex now_mu_;
  absl::Time now_ ABSL_GUARDED_BY(now_mu_) = absl::FromUnixSeconds(1000000000);
};

// Returns the id that this machine's kernel drew when it started; containers of
// one machine have one. Empty if it can't be read.
std::string BootId();

// Returns the time since this machine's kernel started, but for the time that
// it was suspended: as Clock::Real() goes. No clock that is set moves it.
absl::Duration SinceBoot();

}  // namespace parasol

#endif  // PARASOL_BASE_CLOCK_H_
