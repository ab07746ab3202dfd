#ifndef PARASOL_ML_OPTIMIZER_DECAY_STEPS_H_
#define PARASOL_ML_OPTIMIZER_DECAY_STEPS_H_

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Checks the decay_steps of a schedule.
//   InvalidArgument  it is less than 1: "<name> is <value>; …".
inline absl::Status CheckDecaySteps(absl::string_view name,
                                    int64_t decay_steps) {
  if (decay_steps >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", decay_steps, "; it must be at least 1"));
}

// Returns step / decay_steps, rounded down if `staircase`.
inline double Progress(double step, double decay_steps, bool staircase) {
  const double progress = step / decay_steps;
  return staircase ? std::floor(progress) : progress;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DECAY_STEPS_H_
