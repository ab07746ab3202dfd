#ifndef PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that `dataset`, with its defaults filled in, can be opened if its
// files exist and are intact. `path`, "train" or "eval", is its name in errors.
//   InvalidArgument  "<field path>: …", with the value.
absl::Status ValidateDataset(absl::string_view path,
                             const job::Dataset& dataset);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
