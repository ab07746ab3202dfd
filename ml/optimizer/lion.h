#ifndef PARASOL_ML_OPTIMIZER_LION_H_
#define PARASOL_ML_OPTIMIZER_LION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023),
// with the slot "m":
//
//   w *= 1 - lr·weight_decay
//   w -= lr·sign(β₁·m + (1 - β₁)·g)
//   m = β₂·m + (1 - β₂)·g
//
// Rows that a sparse gradient leaves out go on by their momentum, as Adam's do.
//   InvalidArgument  a beta is not in [0, 1), or another number is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLion(
    const job::Lion& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, beta_1 .9, beta_2 .99, weight_decay
// 0.
void FillDefaults(job::Lion& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_LION_H_
