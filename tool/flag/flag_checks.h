#ifndef PARASOL_TOOL_FLAG_FLAG_CHECKS_H_
#define PARASOL_TOOL_FLAG_FLAG_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace parasol {

// Returns OK if the value of the flag `flag` is at least `least`.
//   InvalidArgument  it is not; the message names flag and value.
absl::Status CheckAtLeast(absl::string_view flag, int64_t value, int64_t least);

// Returns OK if the value of the flag `flag` is above 0 and at most a day.
//   InvalidArgument  it is not; the message names flag and value.
absl::Status CheckDuration(absl::string_view flag, absl::Duration value);

}  // namespace parasol

#endif  // PARASOL_TOOL_FLAG_FLAG_CHECKS_H_
