#ifndef PARASOL_ML_TAPE_ARRANGE_H_
#define PARASOL_ML_TAPE_ARRANGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_shape.h"

// Functions that bring elements to other places. Operands are float32 or int64.
// Errors are the result's status: InvalidArgument, with the shapes.
namespace parasol {

// Returns x in another shape of as many elements, without a copy. One size may
// be -1: what the others leave.
Tensor Reshape(const Tensor& x, const TensorShape& shape);
// Returns x with an axis of size 1 before axis `axis`; -1: behind the last.
Tensor ExpandDims(const Tensor& x, int axis);
// Returns x without all axes of size 1, or without one axis, of size 1.
Tensor Squeeze(const Tensor& x);
Tensor Squeeze(const Tensor& x, int axis);

// Returns x with its axes in another order: axis i of the result is axis
// permutation[i] of x. Empty: the axes reversed.
Tensor TransposeAxes(const Tensor& x, const IntList& permutation = {});

// Returns the tensors behind each other along an axis; -1: the innermost.
Tensor Concat(absl::Span<const Tensor> tensors, int axis);

// Returns sizes[i] elements of each axis i, from place begin[i] on; a size of
// -1: all that follow.
Tensor Slice(const Tensor& x, const IntList& begin, const IntList& sizes);

// Returns the rows of x whose numbers are in `ids` (int64, of any shape): of
// shape ids' + x's less its first axis. A row is an element of axis 0.
//   InvalidArgument  an id is not a row's: names it.
Tensor Gather(const Tensor& x, const Tensor& ids);

// Returns `count` rows: row s is the sum of the rows of x (float32) whose `ids`
// (int64) are s, and 0 if there are none. Rows with an id below 0 are left out.
// The shape of `ids` is what x's begins with.
//   InvalidArgument  an id is `count` or more: names it.
Tensor SegmentSum(const Tensor& x, const Tensor& ids, int64_t count);

// Returns, float32, `on` in the place of each id (int64, of any shape) on a new
// innermost axis of size `depth`, and `off` elsewhere, also for an id out of
// range.
Tensor OneHot(const Tensor& ids, int64_t depth, float on = 1, float off = 0);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_ARRANGE_H_
