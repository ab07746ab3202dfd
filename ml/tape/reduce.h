#ifndef PARASOL_ML_TAPE_REDUCE_H_
#define PARASOL_ML_TAPE_REDUCE_H_

#include <cstdint>
#include <initializer_list>

#include "absl/types/span.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

// Axes of a tensor: all, as by Axes() or {}, or a list, in which -1 is the
// innermost one. A single number is a list of one.
class Axes {
 public:
  Axes() : is_all_(true) {}
  Axes(int axis) : list_({axis}) {}                           // NOLINT
  Axes(std::initializer_list<int64_t> axes) : list_(axes) {}  // NOLINT
  explicit Axes(absl::Span<const int64_t> axes) : list_(axes) {}
  // Returns an empty list.
  static Axes None() { return Axes(absl::Span<const int64_t>()); }

  bool is_all() const { return is_all_; }
  const IntList& list() const { return list_; }
  void Add(int64_t axis) { list_.Append(axis); }

 private:
  bool is_all_ = false;
  IntList list_;
};

struct ReduceOptions {
  // True: a reduced axis stays, with size 1.
  bool keep_dims = false;
};

// Reductions of float32 over axes. Sums of many elements are exact to a few
// units of their last place. Errors, as the result's status: InvalidArgument,
// the tensor has no such axis, or an axis stands twice; ReduceMax() and
// ReduceMin() of no elements.
Tensor ReduceSum(const Tensor& x, const Axes& axes = {},
                 const ReduceOptions& options = {});
Tensor ReduceMean(const Tensor& x, const Axes& axes = {},
                  const ReduceOptions& options = {});
// The gradient is shared by all elements that are the largest.
Tensor ReduceMax(const Tensor& x, const Axes& axes = {},
                 const ReduceOptions& options = {});
Tensor ReduceMin(const Tensor& x, const Axes& axes = {},
                 const ReduceOptions& options = {});

// Returns the Euclidean norm over axes. Its gradient at 0 is NaN, as
// TensorFlow's.
Tensor Norm(const Tensor& x, const Axes& axes = {},
            const ReduceOptions& options = {});
// Returns the Euclidean norm of all elements of all tensors.
Tensor GlobalNorm(absl::Span<const Tensor> tensors);

// Returns the place of the largest element along an axis, the first of equal
// ones, int64.
Tensor ArgMax(const Tensor& x, int axis = -1);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_REDUCE_H_
