#include <cstdint>
#include <memory>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/sequence/batched_product.h"

namespace parasol::cuda {
namespace {

__device__ int64_t Begin(const MatrixBatch& batch, int64_t example,
                         int64_t head) {
  return example * batch.example + head * batch.head;
}

// Neighbouring threads have neighbouring columns of one row.
struct ProductElement {
  BatchedProductShape s;
  const float* a;
  const float* b;
  float* c;
  __device__ void operator()(int64_t i) const {
    const int64_t column = i % s.n;
    const int64_t row = i / s.n % s.m;
    const int64_t head = i / s.n / s.m % s.heads;
    const int64_t example = i / s.n / s.m / s.heads;
    const float* const left = a + Begin(s.a, example, head) + row * s.a.row;
    const float* const right =
        b + Begin(s.b, example, head) + column * s.b.column;
    float sum = 0;
    for (int64_t k = 0; k < s.k; ++k) {
      sum += left[k * s.a.column] * right[k * s.b.row];
    }
    c[Begin(s.c, example, head) + row * s.c.row + column * s.c.column] = sum;
  }
};

class CudaBatchedProduct final : public BatchedProduct {
 public:
  CudaBatchedProduct(Device& device, const BatchedProductShape& shape)
      : device_(device), shape_(shape) {}

  absl::Status Multiply(const float* a, const float* b, float* c) override {
    return ForEach(device_, "products of a batch of matrices",
                   shape_.examples * shape_.heads * shape_.m * shape_.n,
                   ProductElement{shape_, a, b, c});
  }

 private:
  Device& device_;
  const BatchedProductShape shape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchedProduct>> NewBatchedProduct(
    Device& device, const BatchedProductShape& shape) {
  return std::make_unique<CudaBatchedProduct>(device, shape);
}

}  // namespace parasol::cuda
