#ifndef PARASOL_WORKER_STEP_STEP_CLAIMS_H_
#define PARASOL_WORKER_STEP_STEP_CLAIMS_H_

#include <cstdint>

#include "proto/chief.pb.h"

namespace parasol {

// The ClaimSteps calls of a worker to the chief, on a thread of their own.
// Thread-safe.
class StepClaims {
 public:
  virtual ~StepClaims() = default;

  // Number of completed steps that a registration reports, as in
  // ClaimStepsRequest.
  virtual int64_t completed_steps() const = 0;

  // Writes into a registration what a chief needs that may not know this
  // worker: completed_steps and, in bounded staleness, clock_lead.
  virtual void Describe(wire::RegisterRequest& request) = 0;

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_STEP_CLAIMS_H_
