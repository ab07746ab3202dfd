#ifndef PARASOL_ML_KERNEL_ZERO_H_
#define PARASOL_ML_KERNEL_ZERO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// `size` zeros at `data`, in the device's memory. Enqueues on the compute
// stream and returns. Unavailable: the device was lost.
absl::Status Zero(Device& device, float* data, int64_t size);

// What the function above chooses from.
namespace cpu {
absl::Status Zero(Device& device, float* data, int64_t size);
}  // namespace cpu

namespace cuda {
absl::Status Zero(Device& device, float* data, int64_t size);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_ZERO_H_
