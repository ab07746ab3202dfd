#ifndef PARASOL_ML_KERNEL_ADD_H_
#define PARASOL_ML_KERNEL_ADD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

enum class AddEpilogue { kNone, kRelu };

// y = epilogue(a + b), `size` elements; NaN stays NaN. `y` may be `a` or `b`,
// but overlaps none otherwise. Enqueues on the compute stream and returns.
// Unavailable: the device was lost.
absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y);

// What the function above chooses from.
namespace cpu {
absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y);
}  // namespace cpu

namespace cuda {
absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_ADD_H_
