#include "tool/flag/flag_checks.h"

#include "absl/strings/str_cat.h"

namespace parasol {

absl::Status CheckAtLeast(absl::string_view flag, int64_t value,
                          int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, " is not at least ", least));
}

absl::Status CheckDuration(absl::string_view flag, absl::Duration value) {
  if (value > absl::ZeroDuration() && value <= absl::Hours(24)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", absl::FormatDuration(value),
                   " is not above 0 and at most 24h"));
}

}  // namespace parasol
