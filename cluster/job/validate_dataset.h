#ifndef PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_

#include "absl/strings/string_view.h"
#include "base/faults.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that `dataset`, with its defaults filled in, can be opened for `model`
// if its files exist and are intact. `path`, "train" or "eval", is its name in
// errors. Returns what keeps it from that:
//   InvalidArgument  "<field path>: …", with the value.
Faults ValidateDataset(absl::string_view path, const job::Dataset& dataset,
                       const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_DATASET_H_
