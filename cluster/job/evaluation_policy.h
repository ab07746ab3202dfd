#ifndef PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_
#define PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// The largest values of a job's fields that count steps or seconds.
inline constexpr int64_t kMaxSteps = int64_t{1} << 53;  // exact as a double
inline constexpr double kMaxSeconds = 1e9;

// Fills in the fields that are not set of what goes by evaluations:
// end.early_stopping, checkpoint.keep_best, optimizer.reduce_on_plateau. A mode
// AUTO becomes that of its metric, if the metric has one.
void FillEvaluationPolicies(job::Job& job);

// Checks these and `evaluation`, for a model with these outputs. The optimizer
// was checked before.
//   InvalidArgument  names the field and says what is wrong with it.
absl::Status ValidateEvaluationPolicies(const job::Job& job,
                                        absl::Span<const OutputSpec> outputs);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_EVALUATION_POLICY_H_
