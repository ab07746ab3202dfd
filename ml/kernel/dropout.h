#ifndef PARASOL_ML_KERNEL_DROPOUT_H_
#define PARASOL_ML_KERNEL_DROPOUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// y[i] = 0 with probability `rate`, in [0, 1), otherwise x[i] / (1 - rate), for
// `size` elements. What is 0 is a function of (seed, i) alone, the same on
// every device, so that the gradient is the same function of dy. With g = i /
// 64 and w, l = i / 16 % 4, i % 16: where word w of Philox4x32 of counter 16 g
// + l under key `seed` is below rate · 2^32.
//
// `y` may be `x`, but overlaps it not otherwise. Enqueues on the compute stream
// and returns. Unavailable: the device was lost.
absl::Status Dropout(Device& device, double rate, uint64_t seed, const float* x,
                     int64_t size, float* y);

// What the functions above choose from.
namespace cpu {
absl::Status Dropout(Device& device, double rate, uint64_t seed, const float* x,
                     int64_t size, float* y);
}  // namespace cpu

namespace cuda {
absl::Status Dropout(Device& device, double rate, uint64_t seed, const float* x,
                     int64_t size, float* y);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_DROPOUT_H_
