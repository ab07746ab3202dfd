#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Whether the loss has a meaning for the model's outputs, and each metric for
// both. The layers have been found good.
//   InvalidArgument  says which field and what is wrong with it.
absl::Status ValidateLoss(const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_
