#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that the loss is defined for the model's outputs, and each metric for
// the loss and the outputs. The layers must be valid.
//   InvalidArgument  names the field and says what is wrong with it.
absl::Status ValidateLoss(const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LOSS_H_
