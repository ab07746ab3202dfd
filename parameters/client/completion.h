#ifndef PARASOL_PARAMETERS_CLIENT_COMPLETION_H_
#define PARASOL_PARAMETERS_CLIENT_COMPLETION_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "parameters/training_parameters.h"

namespace parasol {

// The joint completion of the operations that one push or pull consists of.
// Thread-safe.
class Completion {
 public:
  // Adds operations that are not done. Called before any is.
  void Expect(size_t operations) ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that one operation is done.
  void Finish(const absl::Status& status,
              const TrainingParameters::Outcome& outcome = {})
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if all operations are done.
  bool IsFinished() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return unfinished_ == 0;
  }

  // HoldMemory() keeps Wait() from returning until ReleaseMemory() has been
  // called as often: the transport reads or writes the caller's memory. Call it
  // while an operation is not finished.
  void HoldMemory() ABSL_LOCKS_EXCLUDED(mu_);
  void ReleaseMemory() ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until all operations are done and no memory is held. Returns the
  // first error. Always returns: each operation ends by its shard's timeout,
  // and memory is released when its connection is closed.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks for up to `limit`; returns true if Wait() would return at once.
  bool WaitFor(Clock& clock, absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the joint outcome of the operations that are done and had no error.
  TrainingParameters::Outcome outcome() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return unfinished_ == 0 && memory_holds_ == 0;
  }

  mutable absl::Mutex mu_;
  size_t unfinished_ ABSL_GUARDED_BY(mu_) = 0;
  size_t memory_holds_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool has_outcome_ ABSL_GUARDED_BY(mu_) = false;
  TrainingParameters::Outcome outcome_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_COMPLETION_H_
