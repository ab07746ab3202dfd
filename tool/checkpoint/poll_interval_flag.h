#ifndef PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_
#define PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// --poll_interval, a flag of the commands that follow a directory of
// checkpoints.
ABSL_DECLARE_FLAG(absl::Duration, poll_interval);

namespace parasol {

// Returns OK if the value of the flag `flag` is above 0 and at most a day.
//   InvalidArgument  it is not.
absl::Status CheckDuration(absl::string_view flag, absl::Duration value);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_POLL_INTERVAL_FLAG_H_
