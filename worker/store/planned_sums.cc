#include "worker/store/planned_sums.h"

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<PlannedSums>> PlannedSums::Create(
    std::shared_ptr<const AllReducePlanner> planner, int replicas) {
  ReplicaLayout layout;
  for (int replica = 0; replica < replicas; ++replica) {
    layout.push_back({replica});
  }
  RETURN_IF_ERROR(CheckPlanner(*planner, layout));
  return std::unique_ptr<PlannedSums>(
      new PlannedSums(std::move(planner), std::move(layout)));
}

absl::Status PlannedSums::Add(
    absl::Span<const absl::Span<const float>> gradients, size_t first,
    absl::Span<float> sum, std::vector<float>& workspace) {
  ASSIGN_OR_RETURN(const CombinedPlan* const plan, PlanOf(sum.size()));
  absl::InlinedVector<const float*, 16> contributions;
  for (const absl::Span<const float> gradient : gradients) {
    contributions.push_back(gradient.data() + first);
  }
  if (workspace.size() < plan->workspace_elements()) {
    workspace.resize(plan->workspace_elements());
  }
  plan->Run(contributions, sum, absl::MakeSpan(workspace));
  return absl::OkStatus();
}

// Two threads may make the same plan; one is kept, and never goes.
absl::StatusOr<const CombinedPlan*> PlannedSums::PlanOf(size_t count) {
  {
    absl::MutexLock lock(&mu_);
    const auto found = plans_.find(count);
    if (found != plans_.end()) return &found->second;
  }
  ASSIGN_OR_RETURN(
      CombinedPlan plan,
      CombinedPlan::Make(*planner_, {.layout = layout_, .count = count}));
  absl::MutexLock lock(&mu_);
  return &plans_.try_emplace(count, std::move(plan)).first->second;
}

}  // namespace parasol
