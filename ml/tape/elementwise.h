#ifndef PARASOL_ML_TAPE_ELEMENTWISE_H_
#define PARASOL_ML_TAPE_ELEMENTWISE_H_

#include "ml/tape/tensor.h"

// Functions of each element. Two operands broadcast, as in NumPy and
// TensorFlow. Operands are float32 unless it is said otherwise. Errors are the
// result's status: InvalidArgument for shapes that don't broadcast, or another
// dtype.
namespace parasol {

Tensor Add(const Tensor& a, const Tensor& b);
Tensor Subtract(const Tensor& a, const Tensor& b);
Tensor Multiply(const Tensor& a, const Tensor& b);
Tensor Divide(const Tensor& a, const Tensor& b);
// Two functions whose gradient goes to `a` where both operands are equal.
Tensor Maximum(const Tensor& a, const Tensor& b);
Tensor Minimum(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return Add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return Subtract(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return Multiply(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return Divide(a, b);
}

Tensor Negate(const Tensor& x);
inline Tensor operator-(const Tensor& x) { return Negate(x); }
Tensor Exp(const Tensor& x);
// Returns the natural logarithm: -inf for 0, NaN below.
Tensor Log(const Tensor& x);
// Returns log(1 + x), exact for small x.
Tensor Log1p(const Tensor& x);
Tensor Sqrt(const Tensor& x);
Tensor Square(const Tensor& x);
// Returns x to the power of a number; NaN for a negative x unless the exponent
// is an integer.
Tensor Power(const Tensor& x, float exponent);
// Returns |x|, with gradient 0 at 0.
Tensor Abs(const Tensor& x);
// Returns -1, 0 or 1. Has no gradient.
Tensor Sign(const Tensor& x);
Tensor Tanh(const Tensor& x);
Tensor Sigmoid(const Tensor& x);
// Returns max(x, 0), with gradient 0 at 0.
Tensor Relu(const Tensor& x);
// Returns log(1 + e^x), which no finite x overflows.
Tensor Softplus(const Tensor& x);
// Returns x where it is from `low` to `high`, otherwise the nearer of both,
// with gradient 0 there.
Tensor ClipByValue(const Tensor& x, float low, float high);

// Comparisons of two tensors of one dtype, float32 or int64: 1 for true, 0 for
// false, float32. Have no gradient.
Tensor Equal(const Tensor& a, const Tensor& b);
Tensor NotEqual(const Tensor& a, const Tensor& b);
Tensor Greater(const Tensor& a, const Tensor& b);
Tensor GreaterEqual(const Tensor& a, const Tensor& b);
Tensor Less(const Tensor& a, const Tensor& b);
Tensor LessEqual(const Tensor& a, const Tensor& b);

// Returns a where `condition` is not 0, otherwise b. All three broadcast; the
// gradient by the one that was not chosen is 0.
Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b);

// Returns x as another dtype; to int64, towards 0. From float32 to itself it
// has a gradient.
Tensor Cast(const Tensor& x, DType dtype);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_ELEMENTWISE_H_
