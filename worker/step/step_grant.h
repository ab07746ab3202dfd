#ifndef PARASOL_WORKER_STEP_STEP_GRANT_H_
#define PARASOL_WORKER_STEP_STEP_GRANT_H_

#include <cstdint>

#include "absl/time/time.h"

namespace parasol {

// Counts the steps that the chief has granted to this worker, as totals since
// the worker started. Pure bookkeeping; not thread-safe.
//
// Invariant: completed() <= started(). started() exceeds granted() only if a
// restarted chief has granted less than its predecessor.
class StepGrant {
 public:
  // Takes the next step. Returns false if the grant is used up.
  bool TryStart();
  // Counts one started step as completed: every shard has acknowledged its
  // gradients.
  void Complete();
  // Sets the total number of steps that this worker may start, as the chief's
  // newest answer says.
  void Grant(int64_t granted_total) { granted_ = granted_total; }

  int64_t granted() const { return granted_; }
  int64_t started() const { return started_; }
  int64_t completed() const { return completed_; }
  int64_t held() const { return granted_ > started_ ? granted_ - started_ : 0; }

  // Number of steps to hold so that the worker never waits for the chief, which
  // it asks every `horizon`: twice the steps that the worker completes in one
  // horizon, at its rate of `completed_in` steps in `elapsed`, limited to [1,
  // kMaxHeld].
  static int64_t WantedSteps(int64_t completed_in, absl::Duration elapsed,
                             absl::Duration horizon);

  // Largest number of held steps. Other workers have to repeat the grant of a
  // lost worker, so it is kept small.
  static constexpr int64_t kMaxHeld = 1024;

 private:
  int64_t granted_ = 0;
  int64_t started_ = 0;
  int64_t completed_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_STEP_GRANT_H_
