#include "ml/kernel/sequence/batched_product.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<BatchedProduct>> BatchedProduct::Create(
    Device& device, const BatchedProductShape& shape) {
  return PARASOL_DISPATCH(device, NewBatchedProduct(device, shape));
}

}  // namespace parasol
