#ifndef PARASOL_WORKER_STEP_CLAIMS_H_
#define PARASOL_WORKER_STEP_CLAIMS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace parasol {

// A worker's conversation with the chief about steps, on a thread of its own.
// Thread-safe.
class StepClaims {
 public:
  virtual ~StepClaims() = default;

  // What a registration reports, as in ClaimStepsRequest.
  virtual int64_t completed_steps() const = 0;

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// What no repetition of a claim will change. All else may pass: the chief is
// away, its connection broke, or it has restarted and waits for our
// registration (the session's heartbeat sees to it).
inline bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_CLAIMS_H_
