#ifndef PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Whether the inputs of `model`, with their defaults filled in, can be made of
// columns, if the data set has these.
//   InvalidArgument  "<field path>: …", with the value.
absl::Status ValidateModelInputs(const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_
