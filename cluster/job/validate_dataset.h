#ifndef PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// Whether `dataset`, with its defaults filled in, can be opened where its files
// are there and whole. `path`, "train" or "eval", is what errors call it.
//   InvalidArgument  "<field path>: …", with the value.
absl::Status ValidateDataset(absl::string_view path,
                             const job::Dataset& dataset);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
