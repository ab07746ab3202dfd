#include "ml/kernel/sequence/step_pooling.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status PoolSteps(Device& device, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y) {
  return PARASOL_DISPATCH(device,
                          PoolSteps(device, pooling, shape, x, mask, y));
}

absl::Status PoolStepsGradient(Device& device, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx) {
  return PARASOL_DISPATCH(
      device, PoolStepsGradient(device, pooling, shape, x, mask, y, dy, dx));
}

}  // namespace parasol
