#ifndef PARASOL_ML_KERNEL_DROPOUT_H_
#define PARASOL_ML_KERNEL_DROPOUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// Writes y[i] = 0 with probability `rate`, in [0, 1), otherwise x[i] / (1 -
// rate), for `size` elements. The set of zeros is a function of (seed, i) alone
// and the same on every device, so the gradient is the same function of dy.
// Element i is 0 if word w of Philox4x32 of counter 16 g + l under key `seed`
// is below rate · 2^32, with g = i / 64, w = i / 16 % 4 and l = i % 16.
//
// `y` may be the same array as `x`, but may not overlap it otherwise. Enqueues
// on the compute stream and returns. Error Unavailable: the device was lost.
absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y);
}  // namespace cpu

namespace cuda {
absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_DROPOUT_H_
