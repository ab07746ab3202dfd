#include "ml/kernel/zero.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Zero(Device& device, float* data, int64_t size) {
  return PARASOL_DISPATCH(device, Zero(device, data, size));
}

}  // namespace parasol
