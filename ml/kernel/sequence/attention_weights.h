#ifndef PARASOL_ML_KERNEL_SEQUENCE_ATTENTION_WEIGHTS_H_
#define PARASOL_ML_KERNEL_SEQUENCE_ATTENTION_WEIGHTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// Scores, or weights, [examples, heads, queries, keys], and which of the keys a
// query sees.
struct AttentionShape {
  int64_t examples = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  // Factor of the scores.
  float scale = 1;
  // True: query i sees keys 0 to i.
  bool causal = false;
  // Numbers of the mask from one example to the next, and from one query to the
  // next (0: all queries have one).
  int64_t mask_example = 0;
  int64_t mask_query = 0;

  PARASOL_ON_ANY_DEVICE int64_t rows() const {
    return examples * heads * queries;
  }
  int64_t size() const { return rows() * keys; }
  // Number of keys that come into question for a row's query.
  PARASOL_ON_ANY_DEVICE int64_t Visible(int64_t row) const {
    const int64_t last = row % queries + 1;
    return causal && last < keys ? last : keys;
  }
  // The mask of a row's query; null if there is none.
  PARASOL_ON_ANY_DEVICE const float* MaskOf(const float* mask,
                                            int64_t row) const {
    if (mask == nullptr) return nullptr;
    return mask + row / queries / heads * mask_example +
           row % queries * mask_query;
  }
};

// Both functions enqueue on the compute stream and return. Error Unavailable:
// the device was lost.

// Replaces the scores of each row by the softmax of scale · score over the keys
// that the query sees: those whose number in `mask` is above .5, or all if
// `mask` is null. The weights of other keys are 0, as are all weights of a
// query that sees none.
absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores);

// Replaces the gradients by the weights by the gradients by the scores.
absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores);
absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients);
}  // namespace cpu

namespace cuda {
absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores);
absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_ATTENTION_WEIGHTS_H_
