#ifndef PARASOL_ML_OPTIMIZER_DEVICE_NON_FINITE_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_NON_FINITE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Adds to *count, in the memory of the device, the number of `values` that are
// not finite, as far as float32 counts. Enqueues on the compute stream and
// returns.
//   Unavailable  the device was lost.
absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count);

namespace cpu {
absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count);
}  // namespace cpu
namespace cuda {
absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_NON_FINITE_H_
