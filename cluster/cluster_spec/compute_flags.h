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

// Returns OK if `data_dir`, the value of the flag --data_dir, is a directory or
// the URI of a place in an object store, which is not looked at.
//   InvalidArgument  it is neither.
absl::Status CheckDataDirFlag(const std::string& data_dir);

// Returns OK if `path`, the value of the flag --`flag`, is a directory.
//   InvalidArgument  it does not exist, or is not a directory.
absl::Status CheckDirectoryFlag(absl::string_view flag,
                                const std::string& path);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_COMPUTE_FLAGS_H_
