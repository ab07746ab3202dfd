#ifndef PARASOL_ML_KERNEL_L2_H_
#define PARASOL_ML_KERNEL_L2_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// L2 regularization, which adds l2 · (the sum of the squares of w) to a loss.
// Arrays are in the device's memory. Both functions enqueue on the compute
// stream and return. Error Unavailable: the device was lost.

// Computes *loss = l2 · Σ w[i]², with the same bits every time on the same
// device.
absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss);

// Adds 2 · l2 · w[i] to gradient[i]. `gradient` does not overlap `w`.
absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss);
absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient);
}  // namespace cpu

namespace cuda {
absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss);
absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_L2_H_
