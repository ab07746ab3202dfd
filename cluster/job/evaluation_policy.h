#ifndef PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_
#define PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/faults.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// The largest values of a job's fields that count steps or seconds.
inline constexpr int64_t kMaxSteps = int64_t{1} << 53;  // exact as a double
inline constexpr double kMaxSeconds = 1e9;

// Checks that `seconds` is above 0 and at most kMaxSeconds.
absl::Status ValidateSeconds(absl::string_view path, double seconds);

// Fills in the fields that are not set of what goes by evaluations:
// end.early_stopping, checkpoint.keep_best, optimizer.reduce_on_plateau. A mode
// AUTO becomes the metric's own mode, if it has one.
void FillEvaluationPolicies(job::Job& job);

// Checks these and `evaluation`, for a model with these outputs; nullopt: they
// are not known, and neither is which metrics there are. The optimizer was
// checked before. Each fault is InvalidArgument, names the field and says what
// is wrong with it.
Faults ValidateEvaluationPolicies(
    const job::Job& job, const std::optional<std::vector<OutputSpec>>& outputs);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_
