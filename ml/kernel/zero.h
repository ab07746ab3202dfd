#ifndef PARASOL_ML_KERNEL_ZERO_H_
#define PARASOL_ML_KERNEL_ZERO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Writes `size` zeros to `data`, in the device's memory. Enqueues on the
// compute stream and returns. Error Unavailable: the device was lost.
absl::Status Zero(Device& device, float* data, int64_t size);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status Zero(Device& device, float* data, int64_t size);
}  // namespace cpu

namespace cuda {
absl::Status Zero(Device& device, float* data, int64_t size);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_ZERO_H_
