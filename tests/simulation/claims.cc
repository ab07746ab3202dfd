#include "tests/simulation/claims.h"

#include <algorithm>

#include "worker/step/step_grant.h"

namespace parasol::simulation {

std::optional<int64_t> Claims::TryStart() {
  if (IsOver() || is_finishing()) return std::nullopt;
  const std::optional<int64_t> batch = steps_.TryStart();
  if (steps_.held() == 0) Look();
  return batch;
}

void Claims::Complete() {
  steps_.Complete();
  Look();
}

bool Claims::IsUrgent() const {
  return (steps_.held() == 0 && !asked_in_vain_) ||
         (MayWait() && steps_.completed() > last_completed_);
}

void Claims::Ask(absl::Duration since_last, wire::ClaimStepsRequest& request) {
  steps_.Tell(request);
  files_.Tell(request);
  const int64_t wanted = StepGrant::WantedSteps(
      steps_.completed() - last_completed_, since_last, report_interval());
  request.set_want(std::max<int64_t>(0, wanted - steps_.held()));
  last_completed_ = steps_.completed();
  asked_in_vain_ = true;
}

void Claims::Take(const wire::ClaimStepsResponse& response) {
  files_.Take(response);
  const bool is_awaited = steps_.Take(response);
  asked_in_vain_ = steps_.held() == 0 && !is_awaited;
}

}  // namespace parasol::simulation
