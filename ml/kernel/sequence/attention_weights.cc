#include "ml/kernel/sequence/attention_weights.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores) {
  return PARASOL_DISPATCH(device,
                          AttentionWeights(device, shape, mask, scores));
}

absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients) {
  return PARASOL_DISPATCH(
      device, AttentionWeightsGradient(device, shape, weights, gradients));
}

}  // namespace parasol
