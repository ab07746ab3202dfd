#include "tool/checkpoint/poll_interval_flag.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(absl::Duration, poll_interval, absl::Seconds(1),
          "How often to look for a newer checkpoint.");

namespace parasol {

absl::Status CheckDuration(absl::string_view flag, absl::Duration value) {
  if (value > absl::ZeroDuration() && value <= absl::Hours(24)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", absl::FormatDuration(value),
                   " is not above 0 and at most 24h"));
}

}  // namespace parasol
