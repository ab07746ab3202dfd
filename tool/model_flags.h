#ifndef PARASOL_TOOL_MODEL_FLAGS_H_
#define PARASOL_TOOL_MODEL_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "cluster/checkpoint/model/checkpoint_model.h"

ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(int, threads);
ABSL_DECLARE_FLAG(std::optional<int64_t>, table_memory);
ABSL_DECLARE_FLAG(std::string, table_dir);

namespace parasol {

// Returns what the flags --device, --threads, --table_memory and --table_dir
// say. A directory for tables that can't be used is found here, before any
// checkpoint is read.
//   InvalidArgument  names the flag that is wrong.
absl::StatusOr<CheckpointModel::Options> ModelOptionsFromFlags();

}  // namespace parasol

#endif  // PARASOL_TOOL_MODEL_FLAGS_H_
