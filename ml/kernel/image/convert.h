#ifndef PARASOL_ML_KERNEL_IMAGE_CONVERT_H_
#define PARASOL_ML_KERNEL_IMAGE_CONVERT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Computes to[i] = from[i] for `size` elements, rounded to the nearest, of two
// equally near ones to the even one, if `to` has bfloat16. The arrays may be of
// any types, and do not overlap. Enqueues on the compute stream and returns.
// Error Unavailable: the device was lost.
absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`. The one for the CPU is the specification, and not fast:
// there everything is float32.
namespace cpu {
absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to);
}  // namespace cpu

namespace cuda {
absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_CONVERT_H_
