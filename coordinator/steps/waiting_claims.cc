#include "coordinator/steps/waiting_claims.h"

namespace parasol {

std::optional<StepClaim> WaitingClaims::Add(StepClaim claim) {
  const uint64_t process = claim.request.task().incarnation();
  std::optional<StepClaim> earlier;
  const auto found = claims_.find(process);
  if (found != claims_.end()) {
    deadlines_.erase({found->second.deadline, process});
    earlier = std::move(found->second);
    claims_.erase(found);
  }
  deadlines_.emplace(claim.deadline, process);
  claims_.emplace(process, std::move(claim));
  return earlier;
}

std::vector<StepClaim> WaitingClaims::TakeAll() {
  return TakeDue(absl::InfiniteFuture());
}

std::vector<StepClaim> WaitingClaims::TakeDue(absl::Time now) {
  std::vector<StepClaim> due;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto claim = claims_.find(deadlines_.begin()->second);
    due.push_back(std::move(claim->second));
    claims_.erase(claim);
    deadlines_.erase(deadlines_.begin());
  }
  return due;
}

absl::Time WaitingClaims::deadline() const {
  return deadlines_.empty() ? absl::InfiniteFuture()
                            : deadlines_.begin()->first;
}

}  // namespace parasol
