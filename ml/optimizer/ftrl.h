#ifndef PARASOL_ML_OPTIMIZER_FTRL_H_
#define PARASOL_ML_OPTIMIZER_FTRL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// FTRL: follow the regularised leader, proximal, with online shrinkage (McMahan
// et al. 2013). Slots "accumulator", n, and "linear", z; p =
// learning_rate_power:
//
//   l2' = l2 + beta / (2·lr);  gs = g + 2·shrinkage·w;  n' = n + g²
//   z += gs - (n'^-p - n^-p) / lr · w
//   w = |z| > l1 ? (l1·sgn z - z) / (n'^-p / lr + 2·l2') : 0
//
// The value `w` follows from z from the first update on, whatever it was
// before. Powers other than -.5 call pow() for each element, which takes
// several times as long. The formulas divide by the learning rate: where a
// schedule takes it to 0, nothing changes here, while TensorFlow's values
// become NaN.
//   InvalidArgument  learning_rate is not above 0, learning_rate_power is above
//                    0, or another parameter is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeFtrl(
    const job::Ftrl& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, learning_rate_power -.5,
// initial_accumulator_value .1, and the regularisation strengths and beta to 0.
void FillDefaults(job::Ftrl& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_FTRL_H_
