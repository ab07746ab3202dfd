#ifndef PARASOL_CLUSTER_JOB_VALIDATE_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_H_

#include "absl/status/statusor.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that `job`, with its defaults filled in, can be trained: everything
// that is required is there, every value is in its range, and the layers fit
// each other. Opens no file. Returns the resolved model.
//   InvalidArgument  "<field path>: …", with the value.
absl::StatusOr<Graph> Validate(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_H_
