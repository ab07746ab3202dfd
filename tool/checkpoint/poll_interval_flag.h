#ifndef PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_
#define PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_

#include "absl/flags/declare.h"
#include "absl/time/time.h"

// --poll_interval, a flag of the commands that follow a directory of
// checkpoints.
ABSL_DECLARE_FLAG(absl::Duration, poll_interval);

#endif  // PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_
