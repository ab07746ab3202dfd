#ifndef PARASOL_ML_KERNEL_L2_H_
#define PARASOL_ML_KERNEL_L2_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// L2 regularization: l2 · (the sum of the squares of w) is part of a loss.
// Arrays are in the device's memory. Both enqueue on the compute stream and
// return. Unavailable: the device was lost.

// *loss = l2 · Σ w[i]². The same bits for the same device.
absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss);

// gradient[i] += 2 · l2 · w[i]. `gradient` overlaps nothing.
absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient);

// What the functions above choose from.
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
