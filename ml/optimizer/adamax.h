#ifndef PARASOL_ML_OPTIMIZER_ADAMAX_H_
#define PARASOL_ML_OPTIMIZER_ADAMAX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Adamax: Adam with the largest gradient in place of the mean square. Slots "m"
// and "v"; t = iterations + 1:
//
//   m = β₁·m + (1 - β₁)·g;  v = max(β₂·v, |g|)
//   w -= lr / (1 - β₁ᵗ) · m / (v + epsilon)
//
//   InvalidArgument  a beta is not in [0, 1), epsilon is not above 0, or
//                    learning_rate is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdamax(
    const job::Adamax& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, beta_1 .9, beta_2 .999, epsilon
// 1e-7.
void FillDefaults(job::Adamax& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ADAMAX_H_
