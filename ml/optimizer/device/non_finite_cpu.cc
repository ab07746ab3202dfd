#include <cmath>

#include "ml/optimizer/device/non_finite.h"

namespace parasol::cpu {

absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count) {
  for (int64_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[i])) ++*count;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
