#ifndef PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_

#include "base/faults.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that the inputs of `model`, with their defaults filled in, can be made
// of columns, provided that the data set has these columns.
//   InvalidArgument  "<field path>: …", with the value.
Faults ValidateModelInputs(const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_MODEL_INPUTS_H_
