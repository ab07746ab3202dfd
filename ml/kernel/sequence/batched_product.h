#ifndef PARASOL_ML_KERNEL_SEQUENCE_BATCHED_PRODUCT_H_
#define PARASOL_ML_KERNEL_SEQUENCE_BATCHED_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"

namespace parasol {

// Places of the elements of a batch of float32 matrices, as differences of
// places: from one example's matrices to the next's, from one head's to the
// next one's, from row to row and from column to column.
struct MatrixBatch {
  int64_t example = 0;
  int64_t head = 0;
  int64_t row = 0;
  int64_t column = 0;

  MatrixBatch Transposed() const { return {example, head, column, row}; }
};

// Sizes of products c[m,n] = a[m,k] · b[k,n], one for each head of each
// example. In each batch rows or columns are neighbours (a difference of 1).
struct BatchedProductShape {
  int64_t examples = 0;
  int64_t heads = 0;
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  MatrixBatch a;
  MatrixBatch b;
  MatrixBatch c;
};

// Computes such products, in float32 on every device. Borrows the device. Not
// thread-safe.
class BatchedProduct {
 public:
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<BatchedProduct>> Create(
      Device& device, const BatchedProductShape& shape);
  virtual ~BatchedProduct() = default;

  // Enqueues the products on the compute stream and returns. `c` overlaps no
  // factor.
  //   Unavailable  the device was lost.
  virtual absl::Status Multiply(const float* a, const float* b, float* c) = 0;
};

// The implementations for CPU and CUDA devices. BatchedProduct::Create() calls
// the one for `device`.
namespace cpu {
absl::StatusOr<std::unique_ptr<BatchedProduct>> NewBatchedProduct(
    Device& device, const BatchedProductShape& shape);
}  // namespace cpu

namespace cuda {
absl::StatusOr<std::unique_ptr<BatchedProduct>> NewBatchedProduct(
    Device& device, const BatchedProductShape& shape);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_BATCHED_PRODUCT_H_
