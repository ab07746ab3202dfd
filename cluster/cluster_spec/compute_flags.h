#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_COMPUTE_FLAGS_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_COMPUTE_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Values of the flags that the roles with a model have: worker and evaluator.
struct ComputeFlags {
  std::string data_dir = {};
  std::string device = "auto";
  int threads = 1;
};

// Checks the values before the task contacts any peer, so that a mistake ends
// the process at once.
//   InvalidArgument  the first flag that is wrong; the message names the flag,
//                    its value and what to do. `data_dir` may be empty: the
//                    job's paths are then used as they are.
absl::Status CheckComputeFlags(const ComputeFlags& flags);

// Returns OK if `path`, the value of the flag --`flag`, is a directory.
//   InvalidArgument  it does not exist, or is not a directory.
absl::Status CheckDirectoryFlag(absl::string_view flag,
                                const std::string& path);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_COMPUTE_FLAGS_H_
