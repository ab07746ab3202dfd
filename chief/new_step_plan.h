#ifndef PARASOL_CHIEF_NEW_STEP_PLAN_H_
#define PARASOL_CHIEF_NEW_STEP_PLAN_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "chief/step_plan.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the plan of the job's consistency mode, for a new run or for the one
// that is resumed from the checkpoint `resumed`.
std::unique_ptr<StepPlan> NewStepPlan(
    const job::Job& job,
    const std::optional<durable::CheckpointManifest>& resumed, absl::Time now);

}  // namespace parasol

#endif  // PARASOL_CHIEF_NEW_STEP_PLAN_H_
