#include "ml/kernel/dropout.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y) {
  CHECK(rate >= 0 && rate < 1);
  return PARASOL_DISPATCH(device, Dropout(device, rate, seed, x, size, y));
}

}  // namespace parasol
