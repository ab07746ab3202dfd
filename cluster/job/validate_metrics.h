#ifndef PARASOL_CLUSTER_JOB_VALIDATE_METRICS_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_METRICS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that each metric of `model` is defined for its output and the loss
// of that.
//   InvalidArgument  names the field and says what is wrong with it.
absl::Status ValidateMetrics(const job::Model& model,
                             absl::Span<const OutputSpec> outputs);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_METRICS_H_
