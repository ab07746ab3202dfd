#ifndef PARASOL_ML_KERNEL_RELU_H_
#define PARASOL_ML_KERNEL_RELU_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// Both functions enqueue on the compute stream and return. An output may be the
// same array as an input, but may not overlap one otherwise. Error Unavailable:
// the device was lost.

// Computes y = max(x, 0); NaN stays NaN.
absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y);

// Computes dx = dy where y > 0, otherwise 0. `y` is Relu()'s output.
absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y);
absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx);
}  // namespace cpu

namespace cuda {
absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y);
absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_RELU_H_
