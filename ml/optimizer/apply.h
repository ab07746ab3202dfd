#ifndef PARASOL_ML_OPTIMIZER_APPLY_H_
#define PARASOL_ML_OPTIMIZER_APPLY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

// One variable in plain arrays of the caller, for training without a table:
//
//   ASSIGN_OR_RETURN(const auto adam, MakeOptimizer(spec));
//   std::vector<float> values = …, m(values.size()), v(values.size());
//   float* const slots[] = {m.data(), v.data()};
//   for (int64_t step = 0; step < steps; ++step) {
//     ApplyDense(*adam, step, gradient, {.values = absl::MakeSpan(values),
//                                        .slots = slots});
//   }
struct VariableArrays {
  absl::Span<float> values;
  // One array for each of the optimizer's slot_names(), with the SlotWidth() of
  // each row. The caller fills them with InitialSlotValue() before the first
  // update.
  absl::Span<float* const> slots;
  // Number of values per row: `values` is [rows, width].
  size_t width = 1;
};

// Updates `variable` once, by a gradient with an element for each of its
// elements. `iterations` is the number of updates before this one.
//   InvalidArgument  a size does not fit, or the optimizer is for rows alone.
absl::Status ApplyDense(const Optimizer& optimizer, int64_t iterations,
                        absl::Span<const float> gradient,
                        const VariableArrays& variable);

// Updates `variable` once, by `gradients` [rows.size(), width] for the rows
// `rows`. A row that occurs several times gets the sum, in the order of
// occurrence. Other rows change as optimizer.other_rows() says.
//   InvalidArgument  a size does not fit, or the variable has no such row.
absl::Status ApplySparse(const Optimizer& optimizer, int64_t iterations,
                         absl::Span<const int64_t> rows,
                         absl::Span<const float> gradients,
                         const VariableArrays& variable);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_APPLY_H_
