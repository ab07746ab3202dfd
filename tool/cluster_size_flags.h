#ifndef PARASOL_TOOL_CLUSTER_SIZE_FLAGS_H_
#define PARASOL_TOOL_CLUSTER_SIZE_FLAGS_H_

#include <cstdint>
#include <optional>

#include "absl/flags/declare.h"

// --ps and --workers, flags of the commands that know of a cluster.
ABSL_DECLARE_FLAG(int32_t, ps);
ABSL_DECLARE_FLAG(std::optional<int32_t>, workers);

#endif  // PARASOL_TOOL_CLUSTER_SIZE_FLAGS_H_
