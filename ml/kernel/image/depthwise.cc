#include "ml/kernel/image/depthwise.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y) {
  return PARASOL_DISPATCH(device, Depthwise(device, shape, x, kernel, y));
}

absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel) {
  return PARASOL_DISPATCH(
      device, DepthwiseKernelGradient(device, shape, x, dy, dkernel));
}

absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx) {
  return PARASOL_DISPATCH(
      device, DepthwiseInputGradient(device, shape, dy, kernel, dx));
}

}  // namespace parasol
