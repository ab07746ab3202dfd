#ifndef PARASOL_ML_KERNEL_ADD_H_
#define PARASOL_ML_KERNEL_ADD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

enum class AddEpilogue { kNone, kRelu };

// Computes y = epilogue(a + b) for `size` elements, all of one type; NaN stays
// NaN. `y` may be `a` or `b`, but may not overlap one otherwise. Enqueues on
// the compute stream and returns. Error Unavailable: the device was lost.
absl::Status Add(Device& device, ConstElements a, ConstElements b, int64_t size,
                 AddEpilogue epilogue, Elements y);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y);
}  // namespace cpu

namespace cuda {
absl::Status Add(Device& device, ConstElements a, ConstElements b, int64_t size,
                 AddEpilogue epilogue, Elements y);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_ADD_H_
