#ifndef PARASOL_ML_OPTIMIZER_ADADELTA_H_
#define PARASOL_ML_OPTIMIZER_ADADELTA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Adadelta, whose steps have the size of the last steps. Slots "accum_grad", a,
// and "accum_var", s:
//
//   a = ρ·a + (1 - ρ)·g²;  u = √(s + epsilon) / √(a + epsilon) · g
//   s = ρ·s + (1 - ρ)·u²;  w -= lr·u
//
//   InvalidArgument  rho is not in [0, 1), epsilon is not above 0, or
//                    learning_rate is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdadelta(
    const job::Adadelta& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, rho .95, epsilon 1e-7.
void FillDefaults(job::Adadelta& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ADADELTA_H_
