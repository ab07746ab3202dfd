#include "worker/step/step_grant.h"

#include <algorithm>

#include "base/log.h"

namespace parasol {

bool StepGrant::TryStart() {
  if (started_ >= granted_) return false;
  ++started_;
  return true;
}

void StepGrant::Complete() {
  CHECK_LT(completed_, started_);
  ++completed_;
}

int64_t StepGrant::WantedSteps(int64_t completed_in, absl::Duration elapsed,
                               absl::Duration horizon) {
  if (elapsed <= absl::ZeroDuration()) return 1;
  const double rate = completed_in / absl::ToDoubleSeconds(elapsed);
  const double wanted = 2 * rate * absl::ToDoubleSeconds(horizon);
  return static_cast<int64_t>(
      std::clamp(wanted, 1.0, static_cast<double>(kMaxHeld)));
}

}  // namespace parasol
