#include "ml/optimizer/device/non_finite.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count) {
  return PARASOL_DISPATCH(device, CountNonFinite(device, values, size, count));
}

}  // namespace parasol
