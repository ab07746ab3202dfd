#ifndef PARASOL_COORDINATOR_TESTING_LEDGER_CLAIMS_H_
#define PARASOL_COORDINATOR_TESTING_LEDGER_CLAIMS_H_

#include <cstdint>

#include "coordinator/steps/step_ledger.h"

namespace parasol {

// Makes a claim for `want` steps by a worker that has heard of the version of
// its grants, and has started `started` steps; at least those that it has
// completed. Returns the total that is granted to it.
inline int64_t Claim(StepLedger& ledger, uint64_t worker, int64_t want,
                     int workers, int64_t started = 0) {
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(worker);
  wire::ClaimStepsResponse answer;
  claim.set_assignment_version(-1);
  ledger.Answer(claim, 0, workers, answer);
  claim.set_assignment_version(answer.assignment_version());
  claim.set_started_steps(started);
  answer.Clear();
  ledger.Answer(claim, want, workers, answer);
  return answer.granted_steps();
}

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TESTING_LEDGER_CLAIMS_H_
