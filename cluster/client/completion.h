#ifndef PARASOL_CLUSTER_CLIENT_COMPLETION_H_
#define PARASOL_CLUSTER_CLIENT_COMPLETION_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/exchange_outcome.h"

namespace parasol {

// Joins the requests that one push or pull consists of. Thread-safe.
class Completion {
 public:
  explicit Completion(size_t requests) : unfinished_(requests) {}

  // One request is done.
  void Finish(const absl::Status& status, const ExchangeOutcome& outcome = {})
      ABSL_LOCKS_EXCLUDED(mu_);

  // Keeps Wait() from returning until as many calls of ReleaseMemory(): the
  // transport reads the caller's memory. While a request is not finished.
  void HoldMemory() ABSL_LOCKS_EXCLUDED(mu_);
  void ReleaseMemory() ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until all requests are done and no memory is held. Returns the
  // first error. The limits are those of the requests: each ends by its
  // shard's timeout, and memory is released when its connection is closed.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

  // Whether Wait() would return at once; blocks for that up to `limit`.
  bool WaitFor(Clock& clock, absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // Over the requests that are done and had no error.
  ExchangeOutcome outcome() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return unfinished_ == 0 && memory_holds_ == 0;
  }

  mutable absl::Mutex mu_;
  size_t unfinished_ ABSL_GUARDED_BY(mu_);
  size_t memory_holds_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool has_outcome_ ABSL_GUARDED_BY(mu_) = false;
  ExchangeOutcome outcome_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_COMPLETION_H_
