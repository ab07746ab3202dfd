#ifndef PARASOL_ML_TAPE_TENSOR_H_
#define PARASOL_ML_TAPE_TENSOR_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

struct TensorBody;  // ml/tape/tensor_body.h

enum class DType { kFloat32, kInt64 };

// Returns "float32" or "int64".
absl::string_view NameOf(DType dtype);

// Error thrown by those functions of Tensor that return values, if there are
// none to return. what() is the status's message.
class TensorError : public std::runtime_error {
 public:
  explicit TensorError(absl::Status status);
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// A value of a type and a shape, row-major, in host memory; or an error, which
// every operation on it gives on, so that a chain of operations is checked
// once, at its end.
//
// Immutable. Copies share the memory and are the same value to a tape; what an
// operation returns is a value of its own. May be used by any threads.
class Tensor {
 public:
  // Makes a scalar, float32. Implicit, so that numbers stand in expressions:
  // 1 - x, x * .5f.
  Tensor() : Tensor(0.f) {}
  Tensor(float value);  // NOLINT

  // Returns a copy of values, float32 or int64.
  //   InvalidArgument    (as the tensor's status) the shape has another number
  //                      of elements, or no tensor can have it.
  //   ResourceExhausted  there is no memory.
  static Tensor Of(absl::Span<const float> values, const TensorShape& shape);
  static Tensor Of(std::initializer_list<float> values,
                   const TensorShape& shape) {
    return Of(absl::MakeConstSpan(values.begin(), values.size()), shape);
  }
  static Tensor Ints(absl::Span<const int64_t> values,
                     const TensorShape& shape);
  static Tensor Ints(std::initializer_list<int64_t> values,
                     const TensorShape& shape) {
    return Ints(absl::MakeConstSpan(values.begin(), values.size()), shape);
  }
  // Returns a tensor of memory that is there, shape.size() elements. The tensor
  // and its copies keep the pointer. The values must not change as long as the
  // tensor, a copy or a view of it is used, or a tape that has recorded it: a
  // device may have copied them.
  static Tensor Alias(std::shared_ptr<const float> values,
                      const TensorShape& shape);
  static Tensor Alias(std::shared_ptr<const int64_t> values,
                      const TensorShape& shape);
  // Returns a tensor that is an error; requires that `status` is one.
  static Tensor Error(absl::Status status);

  // OK, or why there are no values.
  const absl::Status& status() const;
  // Returns false for the gradient by a source that no target depends on
  // (GradientTape::Gradient). Its status is NotFound.
  bool connected() const;
  // Three functions that are 0, [] and float32 for an error.
  const TensorShape& shape() const;
  int rank() const { return shape().rank(); }
  DType dtype() const;
  // Number of elements; 0 for an error.
  int64_t size() const;

  // Values in row-major order. They live as long as the tensor or a copy.
  //   throws TensorError  this is an error, or of the other dtype.
  absl::Span<const float> values() const;
  absl::Span<const int64_t> ints() const;
  // Returns the only element, of either dtype, as a float.
  //   throws TensorError  this is an error, or has not one element.
  float scalar() const;

 private:
  friend struct TensorAccess;

  explicit Tensor(std::shared_ptr<const TensorBody> body)
      : body_(std::move(body)) {}
  const TensorBody& body() const;

  // Null in a tensor that was moved from, which counts as a scalar 0.
  std::shared_ptr<const TensorBody> body_;
};

// Tensors with one value everywhere, float32.
//   InvalidArgument    (as the tensor's status) no tensor can have the shape.
//   ResourceExhausted  there is no memory.
Tensor Filled(const TensorShape& shape, float value);
inline Tensor Zeros(const TensorShape& shape) { return Filled(shape, 0); }
inline Tensor Ones(const TensorShape& shape) { return Filled(shape, 1); }

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TENSOR_H_
