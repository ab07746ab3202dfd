#ifndef PARASOL_ML_OPTIMIZER_HYPERPARAMETER_H_
#define PARASOL_ML_OPTIMIZER_HYPERPARAMETER_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Sets an epsilon that is unset or 0 to Keras's default: Keras's optimizers
// take "epsilon or 1e-7".
template <typename Spec>
void FillEpsilon(Spec& spec) {
  if (spec.epsilon() == 0) spec.set_epsilon(1e-7);
}

// Returns InvalidArgument, naming the parameter, its value and the range,
// unless `value` is not negative and, as a float32, finite.
inline absl::Status CheckNotNegative(absl::string_view name, double value) {
  if (value >= 0 && value <= std::numeric_limits<float>::max()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", value, "; it must be a float32 of at least 0"));
}

// Returns such an error unless `value` is a float32 above 0.
inline absl::Status CheckPositive(absl::string_view name, double value) {
  if (value > 0 && value <= std::numeric_limits<float>::max() &&
      static_cast<float>(value) > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be a float32 above 0"));
}

// Returns such an error unless `value` is a float32 of at most 0.
inline absl::Status CheckNotPositive(absl::string_view name, double value) {
  if (value <= 0 && value >= -std::numeric_limits<float>::max()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be a float32 of at most 0"));
}

// Returns such an error unless `value` is in [0, 1].
inline absl::Status CheckUpToOne(absl::string_view name, double value) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be in [0, 1]"));
}

// Returns such an error unless `value` is in [0, 1).
inline absl::Status CheckBelowOne(absl::string_view name, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be in [0, 1)"));
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_HYPERPARAMETER_H_
