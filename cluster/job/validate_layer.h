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

// Checks an initializer. The error is "<field>: …"; the caller puts the
// initializer's path in front.
absl::Status ValidateInitializer(const job::Initializer& initializer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
