#ifndef PARASOL_ML_LAYER_NORMALIZATION_EPSILON_H_
#define PARASOL_ML_LAYER_NORMALIZATION_EPSILON_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {

// Checks that a normalization's epsilon is at most 1, and as float32 neither 0
// nor denormal: kernels compute 1 / sqrt(variance + epsilon) with it, also for
// a variance of 0.
//   InvalidArgument  it is not, or it is NaN.
inline absl::Status CheckEpsilon(double epsilon) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  if (epsilon >= kLeast && epsilon <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("epsilon is ", epsilon, ", not in ", kLeast, " to 1"));
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_NORMALIZATION_EPSILON_H_
