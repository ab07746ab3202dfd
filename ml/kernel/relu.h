#ifndef PARASOL_ML_KERNEL_RELU_H_
#define PARASOL_ML_KERNEL_RELU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Both functions enqueue on the compute stream and return. Arrays have `size`
// elements, all of one type. An output may be the same array as an input, but
// may not overlap one otherwise. Error Unavailable: the device was lost.

// Computes y = max(x, 0); NaN stays NaN.
absl::Status Relu(Device& device, ConstElements x, int64_t size, Elements y);

// Computes dx = dy where y > 0, otherwise 0. `y` is Relu()'s output.
absl::Status ReluGradient(Device& device, ConstElements y, ConstElements dy,
                          int64_t size, Elements dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status Relu(Device& device, const float* x, int64_t size, float* y);
absl::Status ReluGradient(Device& device, const float* y, const float* dy,
                          int64_t size, float* dx);
}  // namespace cpu

namespace cuda {
absl::Status Relu(Device& device, ConstElements x, int64_t size, Elements y);
absl::Status ReluGradient(Device& device, ConstElements y, ConstElements dy,
                          int64_t size, Elements dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_RELU_H_
