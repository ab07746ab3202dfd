#include "ml/kernel/l2.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss) {
  return PARASOL_DISPATCH(device, L2Loss(device, w, size, l2, loss));
}

absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient) {
  return PARASOL_DISPATCH(device, AddL2Gradient(device, w, size, l2, gradient));
}

}  // namespace parasol
