#include "coordinator/steps/worker_claims.h"

#include <algorithm>

namespace parasol {
namespace {

// Time for which a worker that is set aside is granted no steps.
constexpr absl::Duration kSetAside = absl::Seconds(1);

bool HasNoneInFlight(const wire::ClaimStepsRequest& claim) {
  return claim.started_steps() <= claim.completed_steps();
}

}  // namespace

void WorkerClaims::Take(const wire::ClaimStepsRequest& claim) {
  const uint64_t worker = claim.task().incarnation();
  completed_[worker] = claim.completed_steps();
  if (HasNoneInFlight(claim)) {
    idle_.insert(worker);
  } else {
    idle_.erase(worker);
  }
}

void WorkerClaims::Answered(const wire::ClaimStepsRequest& claim,
                            bool holds_steps, absl::Time now) {
  watch_.Report(claim.task().incarnation(), claim.completed_steps(),
                holds_steps, now);
}

void WorkerClaims::Forget(uint64_t worker) {
  watch_.Forget(worker);
  set_aside_.erase(worker);
  completed_.erase(worker);
  idle_.erase(worker);
}

std::vector<uint64_t> WorkerClaims::SetAside(absl::Duration limit,
                                             absl::Time now) {
  std::vector<uint64_t> workers = watch_.Still(limit, now);
  for (const uint64_t worker : workers) {
    watch_.Forget(worker);
    set_aside_[worker] = now;
  }
  return workers;
}

bool WorkerClaims::Resume(const wire::ClaimStepsRequest& claim,
                          absl::Time now) {
  const auto it = set_aside_.find(claim.task().incarnation());
  if (it == set_aside_.end()) return false;
  const bool holds_none = claim.granted_steps() <= claim.completed_steps() &&
                          HasNoneInFlight(claim);
  if (!holds_none || now - it->second < kSetAside) return false;
  set_aside_.erase(it);
  return true;
}

bool WorkerClaims::IsAnyBefore(int64_t step) const {
  return std::any_of(completed_.begin(), completed_.end(),
                     [step](const auto& entry) { return entry.second < step; });
}

bool WorkerClaims::HoldSteps(const StepPlan& plan) const {
  return std::any_of(
      completed_.begin(), completed_.end(),
      [&plan](const auto& entry) { return plan.HoldsSteps(entry.first); });
}

std::vector<uint64_t> WorkerClaims::Still(absl::Time now) const {
  std::vector<uint64_t> workers = watch_.Still(still_named_, now);
  for (const auto& [worker, since] : set_aside_) workers.push_back(worker);
  return workers;
}

}  // namespace parasol
