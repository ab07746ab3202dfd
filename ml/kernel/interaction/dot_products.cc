#include "ml/kernel/interaction/dot_products.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales) {
  return PARASOL_DISPATCH(device, InverseNorms(device, rows, width, x, scales));
}

absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y) {
  return PARASOL_DISPATCH(device, DotProducts(device, shape, a, b, y));
}

absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db) {
  return PARASOL_DISPATCH(
      device, DotProductGradients(device, shape, a, b, y, dy, da, db));
}

}  // namespace parasol
