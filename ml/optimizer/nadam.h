#ifndef PARASOL_ML_OPTIMIZER_NADAM_H_
#define PARASOL_ML_OPTIMIZER_NADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Nadam: Adam with Nesterov's momentum. Slots "m" and "v"; t = iterations + 1:
//
//   μ_t = β₁·(1 - ½·.96^(schedule_decay·t));  P_t = μ_1·…·μ_t
//   m = β₁·m + (1 - β₁)·g;  v = β₂·v + (1 - β₂)·g²
//   n = (1 - μ_t)·g / (1 - P_t) + μ_{t+1}·m / (1 - P_{t+1})
//   w -= lr·n / (√(v / (1 - β₂ᵗ)) + epsilon)
//
// A sparse gradient changes the slots of all rows, but the values of its own
// rows only. Keras's Nadam takes no schedule; `schedule` works here as for any
// other optimizer.
//   InvalidArgument  a beta is not in [0, 1), epsilon is not above 0, or
//                    learning_rate or schedule_decay is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeNadam(
    const job::Nadam& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, beta_1 .9, beta_2 .999, epsilon
// 1e-7, schedule_decay .004.
void FillDefaults(job::Nadam& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_NADAM_H_
