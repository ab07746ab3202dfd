#include "tests/simulation/replica_claims.h"

#include <algorithm>

namespace parasol::simulation {

void ReplicaClaims::Complete(int64_t steps) {
  share_.completed_steps = std::max(share_.completed_steps, steps);
  Look();
}

// The last step is done.
bool ReplicaClaims::IsUrgent() const {
  return share_.end_step > 0 && !HasStepsLeft() &&
         share_.completed_steps > reported_;
}

void ReplicaClaims::Ask(absl::Duration, wire::ClaimStepsRequest& request) {
  request.set_completed_steps(share_.completed_steps);
  request.set_assignment_version(share_.version);
  request.set_pushed_steps(pushed_);
  reported_ = share_.completed_steps;
}

void ReplicaClaims::Take(const wire::ClaimStepsResponse& response) {
  share_.version = response.assignment_version();
  share_.replicas.assign(response.replica().begin(), response.replica().end());
  share_.end_step = response.end_step();
  share_.completed_steps =
      std::max(share_.completed_steps, response.global_step());
}

}  // namespace parasol::simulation
