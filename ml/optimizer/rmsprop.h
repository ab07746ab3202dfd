#ifndef PARASOL_ML_OPTIMIZER_RMSPROP_H_
#define PARASOL_ML_OPTIMIZER_RMSPROP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// RMSprop, with slots "rms", "momentum" if the momentum is above 0, and "mg" if
// centered:
//
//   rms = ρ·rms + (1 - ρ)·g²;  d = rms, or if centered rms - mg²,
//                              mg = ρ·mg + (1 - ρ)·g
//   without momentum:  w -= lr·g / (√d + epsilon)
//   with momentum m:   mom = m·mom + lr·g / √(d + epsilon);  w -= mom
//
// A sparse gradient changes the slots of all rows without momentum, and only
// its own rows with momentum, as in TensorFlow's kernels.
//   InvalidArgument  rho is not in [0, 1), momentum is not in [0, 1], epsilon
//                    is not above 0, or learning_rate is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeRmsProp(
    const job::RmsProp& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, rho .9, momentum 0, epsilon 1e-7,
// not centered.
void FillDefaults(job::RmsProp& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RMSPROP_H_
