#ifndef PARASOL_BASE_FIELD_CHECKS_H_
#define PARASOL_BASE_FIELD_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// Checks of single fields of a job. All errors are
//   InvalidArgument  "<path of the field>: <what is wrong>", with the value.

inline constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();
inline constexpr size_t kMaxNameBytes = 200;

absl::Status Fault(absl::string_view path, absl::string_view what);
absl::Status Missing(absl::string_view path);
// Checks that `value` is in [low, high].
absl::Status RequireInRange(absl::string_view path, int64_t value, int64_t low,
                            int64_t high);
absl::Status RequireBetween(absl::string_view path, double value, double low,
                            double high);
// Checks that each number is in [low, high]; the error names the first one that
// is not.
absl::Status RequireAllInRange(absl::string_view path,
                               absl::Span<const int64_t> numbers, int64_t low,
                               int64_t high);
absl::Status RequireFinite(absl::string_view path, double value);
absl::Status RequireAtLeastZero(absl::string_view path, double value);
absl::Status RequirePositive(absl::string_view path, double value);
// Checks that `value` can be the path of a file or a directory, or a glob.
absl::Status RequirePath(absl::string_view path, absl::string_view value);

}  // namespace parasol

#endif  // PARASOL_BASE_FIELD_CHECKS_H_
