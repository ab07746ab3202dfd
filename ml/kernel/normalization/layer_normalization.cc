#include "ml/kernel/normalization/layer_normalization.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y) {
  return PARASOL_DISPATCH(
      device, LayerNormalization(device, x, gamma, beta, epsilon, moments, y));
}

absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta) {
  return PARASOL_DISPATCH(device, LayerNormalizationVariableGradients(
                                      device, x, moments, dy, dgamma, dbeta));
}

absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx) {
  return PARASOL_DISPATCH(device, LayerNormalizationInputGradient(
                                      device, x, gamma, moments, dy, dx));
}

}  // namespace parasol
