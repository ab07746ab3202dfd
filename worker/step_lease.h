#ifndef PARASOL_WORKER_STEP_LEASE_H_
#define PARASOL_WORKER_STEP_LEASE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace parasol {

// The steps that the chief has granted to this worker, as totals since the
// worker started. Pure bookkeeping; not thread-safe.
//
// Invariant: completed() <= started(). Started steps may exceed the grant only
// when a restarted chief has granted less than the one before it.
class StepLease {
 public:
  // Takes the next step; false when the grant is used up.
  bool TryStart();
  // One started step is done: every shard has acknowledged its gradients.
  void Complete();
  // The chief's newest word on the total that this worker may start.
  void Grant(int64_t granted_total) { granted_ = granted_total; }

  int64_t granted() const { return granted_; }
  int64_t started() const { return started_; }
  int64_t completed() const { return completed_; }
  int64_t held() const { return granted_ > started_ ? granted_ - started_ : 0; }

  // How many steps to hold so that asking the chief, every `horizon`, never
  // makes the worker wait: what it did in the last horizon, twice over, within
  // [1, kMaxHeld].
  static int64_t WantedSteps(int64_t completed_in, absl::Duration elapsed,
                             absl::Duration horizon);

  // A lost worker's grant has to be done again by others: keep it small.
  static constexpr int64_t kMaxHeld = 1024;

 private:
  int64_t granted_ = 0;
  int64_t started_ = 0;
  int64_t completed_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_LEASE_H_
