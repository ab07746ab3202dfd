#ifndef PARASOL_ML_KERNEL_ACTIVATION_H_
#define PARASOL_ML_KERNEL_ACTIVATION_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

enum class ActivationFunction {
  kLinear,
  kRelu,
  kSigmoid,
  kTanh,
  kGelu,     // x · Φ(x)
  kSoftmax,  // over a row
};

// Whether the gradient is a function of the output alone; otherwise (gelu) of
// the input.
inline bool IsGradientOfOutput(ActivationFunction function) {
  return function != ActivationFunction::kGelu;
}

// Both enqueue on the compute stream and return. An output may be an input
// itself, but overlaps none otherwise. NaN stays NaN. Unavailable: the device
// was lost.

// y = function(x).
absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y);

// dx from dy. `at`: Activate()'s output, or its input where
// !IsGradientOfOutput().
absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx);

// What the functions above choose from, for functions that are neither linear
// nor relu.
namespace cpu {
absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y);
absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx);
}  // namespace cpu

namespace cuda {
absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y);
absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_ACTIVATION_H_
