#include "tool/cluster_size_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(int32_t, ps, 0,
          "How many parameter servers; of a check without it 1.");
ABSL_FLAG(std::optional<int32_t>, workers, std::nullopt,
          "How many workers. Default: all processes without another role; of a "
          "check 1.");
