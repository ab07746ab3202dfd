#include "worker/step/shared_steps.h"

#include <algorithm>

namespace parasol {

bool SharedSteps::HasStepAfter(int64_t completed) {
  absl::MutexLock lock(&mu_);
  if (completed < end_ || is_final_) return completed < end_;
  is_final_ = is_over_(completed);
  if (!is_final_) end_ = completed + 1;
  return !is_final_;
}

absl::StatusOr<std::optional<ReplicaShare>> SharedStepsOfReplica::Await() {
  if (stopped_) return absl::CancelledError("stopped");
  if (!steps_.HasStepAfter(completed_)) return std::nullopt;
  return Now();
}

absl::StatusOr<ReplicaShare> SharedStepsOfReplica::Now() {
  ReplicaShare share;
  share.version = 1;
  share.replicas = {replica_};
  share.completed_steps = completed_;
  share.end_step = completed_ + 1;
  return share;
}

void SharedStepsOfReplica::Complete(int64_t steps) {
  completed_ = std::max(completed_, steps);
}

}  // namespace parasol
