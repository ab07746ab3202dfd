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
  kGelu,       // x · Φ(x)
  kSoftmax,    // softmax of a row
  kLeakyRelu,  // x, or kLeakyReluSlope · x below 0
  kSilu,       // x · sigmoid(x)
  kSoftplus,   // log(1 + e^x)
  kElu,        // x, or e^x - 1 below 0
};

// Slope of a leaky relu below 0, as in tf.nn.leaky_relu.
inline constexpr float kLeakyReluSlope = 0.2f;

// Returns true if the gradient is a function of the output alone. The gradients
// of gelu and silu, which are no monotonous functions, are functions of the
// input.
inline bool IsGradientOfOutput(ActivationFunction function) {
  return function != ActivationFunction::kGelu &&
         function != ActivationFunction::kSilu;
}

// Both functions enqueue on the compute stream and return. An output may be the
// same array as an input, but may not overlap one otherwise. NaN stays NaN.
// Error Unavailable: the device was lost.

// y = function(x).
absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y);

// Computes dx from dy. `at` is Activate()'s output, or its input where
// IsGradientOfOutput() is false.
absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx);

// The implementations for CPU and CUDA devices. The functions above call them
// for functions that are neither linear nor relu.
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
