#ifndef PARASOL_ML_KERNEL_MULTIPLY_H_
#define PARASOL_ML_KERNEL_MULTIPLY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Computes y = a · b, element by element, for `size` elements; with `addend`
// not null y = a · b + addend, rounded after the product and after the sum. `y`
// may be any of the inputs, but may not overlap one otherwise. Enqueues on the
// compute stream and returns. Error Unavailable: the device was lost.
absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y);
}  // namespace cpu

namespace cuda {
absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_MULTIPLY_H_
