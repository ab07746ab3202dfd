#include "base/field_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kMaxPathBytes = 4096;

}  // namespace

absl::Status Fault(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status Missing(absl::string_view path) {
  return Fault(path, "is not set, but needed");
}

absl::Status RequireInRange(absl::string_view path, int64_t value, int64_t low,
                            int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Fault(path, absl::StrCat(value, " is not in ", low, " to ", high));
}

absl::Status RequireBetween(absl::string_view path, double value, double low,
                            double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Fault(path, absl::StrCat(value, " is not in ", low, " to ", high));
}

absl::Status RequireAllInRange(absl::string_view path,
                               absl::Span<const int64_t> numbers, int64_t low,
                               int64_t high) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    RETURN_IF_ERROR(
        RequireInRange(absl::StrCat(path, "[", i, "]"), numbers[i], low, high));
  }
  return absl::OkStatus();
}

absl::Status RequireFinite(absl::string_view path, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return Fault(path, absl::StrCat(value, " is not finite"));
}

absl::Status RequireAtLeastZero(absl::string_view path, double value) {
  RETURN_IF_ERROR(RequireFinite(path, value));
  if (value >= 0) return absl::OkStatus();
  return Fault(path, absl::StrCat(value, " is negative"));
}

absl::Status RequirePositive(absl::string_view path, double value) {
  RETURN_IF_ERROR(RequireFinite(path, value));
  if (value > 0) return absl::OkStatus();
  return Fault(path, absl::StrCat(value, " is not greater than 0"));
}

absl::Status RequirePath(absl::string_view path, absl::string_view value) {
  if (value.empty()) return Missing(path);
  if (value.size() > kMaxPathBytes ||
      std::any_of(value.begin(), value.end(), absl::ascii_iscntrl)) {
    return Fault(
        path,
        absl::StrCat("\"", ShownText(value, 100),
                     "\" is not a file name: it has control characters or "
                     "more than 4096 bytes"));
  }
  return absl::OkStatus();
}

}  // namespace parasol
