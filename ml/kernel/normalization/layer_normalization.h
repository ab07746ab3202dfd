#ifndef PARASOL_ML_KERNEL_NORMALIZATION_LAYER_NORMALIZATION_H_
#define PARASOL_ML_KERNEL_NORMALIZATION_LAYER_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// Moments of each row that the forward pass leaves for the gradients: the mean
// and 1 / sqrt(variance + epsilon).
struct RowMoments {
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
};

// All functions of this header enqueue on the compute stream and return;
// outputs overlap no input. Error Unavailable: the device was lost.

// Computes y = z · gamma + beta with z = (x - mean) · inverse_deviation, from
// the moments of each row (whose variance divides by the number of columns). A
// null `gamma` or `beta` is left out.
absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y);

// Computes dgamma = Σ over rows of dy · z and dbeta = Σ dy. A gradient whose
// array is null is not computed.
absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta);

// Computes dx = inverse_deviation · (g - mean of g - z · mean of g · z) with g
// = dy · gamma.
absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y);
absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta);
absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx);
}  // namespace cpu

namespace cuda {
absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y);
absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta);
absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_NORMALIZATION_LAYER_NORMALIZATION_H_
