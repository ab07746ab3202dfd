#ifndef PARASOL_CLUSTER_JOB_VALIDATE_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "base/faults.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that `job`, with its defaults filled in, can be trained: everything
// that is required is there, every value is in its range, and the layers fit
// each other. Opens no file. Returns the resolved model.
//   InvalidArgument  "<field path>: …", with the value: the first fault.
absl::StatusOr<Graph> Validate(const job::Job& job);

// Checks `job` as above, but goes on behind a fault: `faults` gets all faults.
// Of a layer that reads one at fault only the names are checked. Returns the
// model unless it has a fault.
std::optional<Graph> Validate(const job::Job& job, Faults& faults);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_H_
