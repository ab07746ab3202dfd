#ifndef PARASOL_ML_LAYER_FIELD_NORMALIZATION_EPSILON_H_
#define PARASOL_ML_LAYER_FIELD_NORMALIZATION_EPSILON_H_

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"

namespace parasol {

inline constexpr double kLeastEpsilon = std::numeric_limits<float>::min();

// Checks that a normalization's epsilon is at most 1, and as float32 neither 0
// nor denormal: kernels compute 1 / sqrt(variance + epsilon) with it, also for
// a variance of 0.
//   InvalidArgument  it is not, or it is NaN.
inline absl::Status CheckEpsilon(double epsilon) {
  if (epsilon >= kLeastEpsilon && epsilon <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "epsilon is ", epsilon, ", not in ", kLeastEpsilon, " to 1"));
}

// Checks the field at `path` in the job likewise.
inline absl::Status RequireEpsilon(const std::string& path, double epsilon) {
  if (CheckEpsilon(epsilon).ok()) return absl::OkStatus();
  return Fault(path,
               absl::StrCat(epsilon, " is not in ", kLeastEpsilon, " to 1"));
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FIELD_NORMALIZATION_EPSILON_H_
