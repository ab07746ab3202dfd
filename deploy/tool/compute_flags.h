#ifndef PARASOL_DEPLOY_TOOL_COMPUTE_FLAGS_H_
#define PARASOL_DEPLOY_TOOL_COMPUTE_FLAGS_H_

#include <string>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "evaluator/checkpoint_model.h"

ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(int, threads);

namespace parasol {

// Returns what the flags --device and --threads say.
//   InvalidArgument  names the flag that is wrong.
absl::StatusOr<CheckpointModel::Options> ModelOptionsFromFlags();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_COMPUTE_FLAGS_H_
