#include "chief/new_step_plan.h"

#include <cstdint>

#include "chief/replica_plan.h"
#include "chief/step_ledger.h"

namespace parasol {

std::unique_ptr<StepPlan> NewStepPlan(
    const job::Job& job,
    const std::optional<durable::CheckpointManifest>& resumed, absl::Time now) {
  const job::ParameterServerStrategy& strategy = job.parameter_server();
  if (strategy.has_synchronous()) {
    return std::make_unique<ReplicaPlan>(
        strategy.synchronous().total_replicas(), absl::ToUnixMicros(now),
        resumed ? std::optional<int64_t>(resumed->global_step())
                : std::nullopt);
  }
  std::optional<int64_t> bound;
  if (strategy.has_bounded_staleness()) {
    bound = strategy.bounded_staleness().bound();
  }
  return resumed ? std::make_unique<StepLedger>(*resumed, bound)
                 : std::make_unique<StepLedger>(bound);
}

}  // namespace parasol
