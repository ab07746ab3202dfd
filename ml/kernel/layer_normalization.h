#ifndef PARASOL_ML_KERNEL_LAYER_NORMALIZATION_H_
#define PARASOL_ML_KERNEL_LAYER_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// What a forward pass leaves for the gradients, of each row: the mean and
// 1 / sqrt(variance + epsilon).
struct RowMoments {
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
};

// All of these enqueue on the compute stream and return; outputs overlap no
// input. Unavailable: the device was lost.

// y = z · gamma + beta with z = (x - mean) · inverse_deviation, moments of each
// row (the variance divided by the columns). No gamma or beta where null.
absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y);

// dgamma = Σ over rows of dy · z and dbeta = Σ dy, unless null.
absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta);

// dx = inverse_deviation · (g - mean of g - z · mean of g · z), g = dy · gamma.
absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx);

// What the functions above choose from.
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

#endif  // PARASOL_ML_KERNEL_LAYER_NORMALIZATION_H_
