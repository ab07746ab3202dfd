#ifndef PARASOL_ML_TAPE_BROADCAST_H_
#define PARASOL_ML_TAPE_BROADCAST_H_

#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

// Returns the shape that both broadcast to, as in NumPy: aligned at the
// innermost axis, an axis of size 1 is repeated.
//   InvalidArgument  "shapes [2, 3] and [4] don't broadcast".
absl::StatusOr<TensorShape> BroadcastShape(const TensorShape& a,
                                           const TensorShape& b);

// Calls row(out, a, b, size, a_step, b_step) for parts of an array of shape
// `out`, in order: `size` elements from place `out` on, for which elements of
// the operands lie from places `a` and `b` on, each `step` apart: 0 or 1.
// `out` is what the shapes broadcast to.
void ForEachBroadcastRow(
    const TensorShape& out, const TensorShape& a, const TensorShape& b,
    absl::FunctionRef<void(int64_t out, int64_t a, int64_t b, int64_t size,
                           int64_t a_step, int64_t b_step)>
        row);

// Returns `x` broadcast to a shape.
//   InvalidArgument  (as the tensor's status) it doesn't broadcast to it.
Tensor BroadcastTo(const Tensor& x, const TensorShape& shape);

// Returns `x` summed over the axes along which `shape` was broadcast to the
// shape of `x`.
Tensor SumTo(const Tensor& x, const TensorShape& shape);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_BROADCAST_H_
