#include "ml/kernel/multiply.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y) {
  return PARASOL_DISPATCH(device, Multiply(device, a, b, addend, size, y));
}

}  // namespace parasol
