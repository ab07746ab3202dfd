#ifndef PARASOL_WORKER_STEP_CLAIMS_H_
#define PARASOL_WORKER_STEP_CLAIMS_H_

#include <cstdint>

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

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_CLAIMS_H_
