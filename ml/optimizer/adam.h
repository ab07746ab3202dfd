#ifndef PARASOL_ML_OPTIMIZER_ADAM_H_
#define PARASOL_ML_OPTIMIZER_ADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Adam, with slots "m" and "v", and "vhat" with amsgrad. t = iterations + 1:
//
//   m = β₁·m + (1 - β₁)·g;  v = β₂·v + (1 - β₂)·g²
//   α = lr·√(1 - β₂ᵗ) / (1 - β₁ᵗ)
//   w -= α·m / (√v + epsilon), or with amsgrad √v̂, v̂ = max(v̂, v)
//
// α and the 1 - β are computed in double and then rounded. In float, 1 - .999
// is off by 1.3e-5, which is the error of Keras's slot "v".
//   InvalidArgument  a beta is not in [0, 1), epsilon is not above 0, or
//                    learning_rate is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdam(
    const job::Adam& spec, const job::LearningRateSchedule& schedule);

// Adam, except for the rows that a sparse gradient leaves out: they stay as
// they are, while Adam's rows go on by their momentum.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLazyAdam(
    const job::LazyAdam& spec, const job::LearningRateSchedule& schedule);

// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight
// Decay Regularization", 2017): each update first takes lr·weight_decay·w from
// w, also for the rows that a sparse gradient leaves out. As in Keras, biases
// and normalizations decay too.
//   InvalidArgument  also: weight_decay is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdamW(
    const job::AdamW& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, beta_1 .9, beta_2 .999, epsilon
// 1e-7, no amsgrad; and weight_decay .004.
void FillDefaults(job::Adam& spec);
void FillDefaults(job::LazyAdam& spec);
void FillDefaults(job::AdamW& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ADAM_H_
