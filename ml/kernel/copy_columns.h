#ifndef PARASOL_ML_KERNEL_COPY_COLUMNS_H_
#define PARASOL_ML_KERNEL_COPY_COLUMNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Copies a matrix [rows, columns] whose rows begin `from_stride` elements apart
// to one whose rows begin `to_stride` elements apart. The two do not overlap.
// Enqueues on the compute stream and returns. Error Unavailable: the device was
// lost.
absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride);
}  // namespace cpu

namespace cuda {
absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_COPY_COLUMNS_H_
