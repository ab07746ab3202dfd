#ifndef PARASOL_ML_KERNEL_RELU_H_
#define PARASOL_ML_KERNEL_RELU_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// Both enqueue on the compute stream and return. An output may be an input
// itself, but overlaps none otherwise. Unavailable: the device was lost.

// y = max(x, 0); NaN stays NaN.
absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y);

// dx = dy where y > 0, otherwise 0. `y` is Relu()'s output.
absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx);

// What the functions above choose from.
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
