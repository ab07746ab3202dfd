#ifndef PARASOL_ML_OPTIMIZER_ADAGRAD_H_
#define PARASOL_ML_OPTIMIZER_ADAGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Adagrad: the step of each element shrinks with the gradients that the element
// has seen. One slot, "accumulator":  a += g²;  w -= lr·g / (√a + epsilon).
//   InvalidArgument  epsilon is not above 0, or another parameter is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdagrad(
    const job::Adagrad& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .001, initial_accumulator_value .1,
// epsilon 1e-7.
void FillDefaults(job::Adagrad& spec);

// Adagrad with one accumulator for each row of a table, "row_accumulator", as
// FBGEMM's EXACT_ROWWISE_ADAGRAD (rule/rowwise_adagrad.h):
//
//   a += mean of the squares of the row's gradient
//   w -= lr / (√a + epsilon) · g
//
// An update of elements takes each for a row of its own.
//   InvalidArgument  epsilon is not above 0, or another parameter is negative.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeRowwiseAdagrad(
    const job::RowwiseAdagrad& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to FBGEMM's learning_rate .01, initial_accumulator_value 0,
// epsilon 1e-8.
void FillDefaults(job::RowwiseAdagrad& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ADAGRAD_H_
