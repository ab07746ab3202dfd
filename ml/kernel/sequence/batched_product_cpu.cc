#include <utility>

#include "base/status_macros.h"
#include "ml/device/dnnl_operation.h"
#include "ml/kernel/sequence/batched_product.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace parasol::cpu {
namespace {

class DnnlBatchedProduct final : public BatchedProduct {
 public:
  explicit DnnlBatchedProduct(DnnlOperation operation)
      : operation_(std::move(operation)) {}

  absl::Status Multiply(const float* a, const float* b, float* c) override {
    return operation_.Run({a, b, c});
  }

 private:
  DnnlOperation operation_;
};

dnnl::memory::desc LayoutOf(const BatchedProductShape& s, int64_t rows,
                            int64_t columns, const MatrixBatch& batch) {
  return {{s.examples, s.heads, rows, columns},
          dnnl::memory::data_type::f32,
          {batch.example, batch.head, batch.row, batch.column}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchedProduct>> NewBatchedProduct(
    Device& device, const BatchedProductShape& shape) {
  const dnnl::memory::desc a = LayoutOf(shape, shape.m, shape.k, shape.a);
  const dnnl::memory::desc b = LayoutOf(shape, shape.k, shape.n, shape.b);
  const dnnl::memory::desc c = LayoutOf(shape, shape.m, shape.n, shape.c);
  ASSIGN_OR_RETURN(
      DnnlOperation operation,
      DnnlOperation::Create(
          device,
          [&](const dnnl::engine& engine) -> DnnlOperation::Description {
            return {
                dnnl::matmul::primitive_desc(
                    {a, b, c}, DnnlOperation::Attributes(), engine),
                {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
          }));
  return std::make_unique<DnnlBatchedProduct>(std::move(operation));
}

}  // namespace parasol::cpu
