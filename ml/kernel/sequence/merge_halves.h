#ifndef PARASOL_ML_KERNEL_SEQUENCE_MERGE_HALVES_H_
#define PARASOL_ML_KERNEL_SEQUENCE_MERGE_HALVES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

enum class HalvesMerge { kSum, kProduct, kAverage };

// Computes y [rows, columns] from the two halves of each row of `both` [rows, 2
// · columns]. Both functions enqueue on the compute stream and return; outputs
// overlap no input. Error Unavailable: the device was lost.
absl::Status MergeHalves(Device& device, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y);

// Computes the gradient by `both`.
absl::Status MergeHalvesGradient(Device& device, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status MergeHalves(Device& device, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y);
absl::Status MergeHalvesGradient(Device& device, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth);
}  // namespace cpu

namespace cuda {
absl::Status MergeHalves(Device& device, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y);
absl::Status MergeHalvesGradient(Device& device, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_MERGE_HALVES_H_
