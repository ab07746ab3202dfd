#ifndef PARASOL_ML_OPTIMIZER_LAMB_H_
#define PARASOL_ML_OPTIMIZER_LAMB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// LAMB (You et al., "Large Batch Optimization for Deep Learning", 2020), with
// the slots "m" and "v". t = iterations + 1; norms are of the whole variable:
//
//   m = β₁·m + (1 - β₁)·g;  v = β₂·v + (1 - β₂)·g²
//   u = m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + epsilon) + weight_decay·w
//   w -= lr·‖w‖ / ‖u‖·u;  w -= lr·u if one of the norms is 0
//
// Squares are summed in double, in the order of rule/clip.h: the same bits on
// every machine and device. An update of elements or rows takes them for a
// whole variable each (Optimizer::needs_whole_variable()).
//
// The optimizer is for variables in none of the lists; LambOf() resolves the
// lists. An empty expression is in all names.
//   InvalidArgument  a beta is not in [0, 1), epsilon is not above 0, another
//                    number is negative, or an expression is none.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLamb(
    const job::Lamb& spec, const job::LearningRateSchedule& schedule);

// Returns `spec` as it is for the variable of this name, without lists of
// variables: no weight decay, or an empty expression in
// exclude_from_layer_adaptation, if it is excluded. An expression that is none
// is found in no name.
job::Lamb LambOf(job::Lamb spec, absl::string_view variable);

// Sets unset fields to the defaults of TensorFlow Addons: learning_rate .001,
// beta_1 .9, beta_2 .999, epsilon 1e-6, weight_decay 0, and
// exclude_from_layer_adaptation to exclude_from_weight_decay. An epsilon of 0
// is 1e-7.
void FillDefaults(job::Lamb& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_LAMB_H_
