#ifndef PARASOL_ML_TAPE_TENSOR_BODY_H_
#define PARASOL_ML_TAPE_TENSOR_BODY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

// The part of a tensor that its copies share.
struct TensorBody {
  TensorBody();
  TensorBody(const TensorBody&) = delete;
  TensorBody& operator=(const TensorBody&) = delete;

  absl::Status status;
  DType dtype = DType::kFloat32;
  bool connected = true;
  TensorShape shape;
  // Number of this value: no other value of the process has it.
  uint64_t id;
  // Number of the elements, which views have, too: it stands for the same
  // elements everywhere.
  uint64_t elements_id;
  // Key of a leaf; null for all other values.
  const void* leaf = nullptr;
  // Elements: in `few`, or in memory that `owner` keeps. Null if there are
  // none, or if a tape kept the value's shape alone.
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
  alignas(16) std::byte few[16];
};

// The type and the shape of a value.
struct TensorType {
  DType dtype = DType::kFloat32;
  TensorShape shape;
};

// A tensor whose elements are still to be written.
struct NewTensor {
  Tensor tensor;
  void* data = nullptr;

  absl::Span<float> floats() const {
    return absl::MakeSpan(static_cast<float*>(data), tensor.size());
  }
  absl::Span<int64_t> ints() const {
    return absl::MakeSpan(static_cast<int64_t*>(data), tensor.size());
  }
};

// Access for code of the operations, which has checked that a tensor is no
// error.
struct TensorAccess {
  static const TensorBody& Body(const Tensor& tensor) { return tensor.body(); }
  static const float* Floats(const Tensor& tensor) {
    return static_cast<const float*>(tensor.body().data);
  }
  static const int64_t* Ints(const Tensor& tensor) {
    return static_cast<const int64_t*>(tensor.body().data);
  }

  // Returns a tensor whose elements may be anything.
  //   InvalidArgument    no tensor can have the shape.
  //   ResourceExhausted  there is no memory: names the bytes.
  static absl::StatusOr<NewTensor> New(const TensorType& type);
  // Returns a value of its own with the memory of `tensor`, which has as many
  // elements as `shape`; as a leaf if `leaf` is not null.
  static Tensor View(const Tensor& tensor, const TensorShape& shape,
                     const void* leaf = nullptr);
  // Returns `tensor` without its elements, for a tape.
  static Tensor WithoutElements(const Tensor& tensor);
  // Returns the gradient of source number `source`, which no target reaches.
  static Tensor Unconnected(int64_t source);
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TENSOR_BODY_H_
