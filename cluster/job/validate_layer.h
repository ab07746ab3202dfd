#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Whether every layer of `model`, with its defaults filled in, has the fields
// that it needs, each in its range. Not whether shapes fit each other.
//   InvalidArgument  "model.layer[<i>].<field>: …", with the value.
absl::Status ValidateLayers(const job::Model& model);

// "<field>: …", to be put behind the initializer's path.
absl::Status ValidateInitializer(const job::Initializer& initializer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
