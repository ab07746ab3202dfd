#include "ml/kernel/interaction/weighted_sum.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y) {
  return PARASOL_DISPATCH(device, WeightedSum(device, shape, w, x, y));
}

absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx) {
  return PARASOL_DISPATCH(
      device, WeightedSumGradients(device, shape, w, x, dy, dw, dx));
}

}  // namespace parasol
