#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that every layer of `model`, with its defaults filled in, has the
// fields that it needs, each in its range. Does not check that shapes fit each
// other.
//   InvalidArgument  "model.layer[<i>].<field>: …", with the value.
absl::Status ValidateLayers(const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
