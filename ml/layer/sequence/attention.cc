#include "ml/layer/sequence/attention.h"

#include <cmath>

#include "base/status_macros.h"
#include "ml/kernel/dropout.h"

namespace parasol {

Attention::Attention(Device& device, const AttentionSizes& sizes)
    : device_(device),
      sizes_(sizes),
      shape_{.examples = sizes.examples,
             .heads = sizes.heads,
             .queries = sizes.queries,
             .keys = sizes.keys,
             .scale = 1 / std::sqrt(static_cast<float>(sizes.key_width)),
             .causal = sizes.causal,
             .mask_example = sizes.mask_example,
             .mask_query = sizes.mask_query} {}

absl::StatusOr<std::unique_ptr<Attention>> Attention::Create(
    Device& device, const AttentionSizes& sizes) {
  std::unique_ptr<Attention> attention(new Attention(device, sizes));
  const auto& [n, heads, queries, keys, key_width, value_width, causal,
               mask_example, mask_query, dropout] = sizes;
  const int64_t size = attention->shape_.size();
  ASSIGN_OR_RETURN(attention->weights_, device.NewArray<float>(size));
  ASSIGN_OR_RETURN(attention->dropped_,
                   device.NewArray<float>(dropout > 0 ? size : 0));
  ASSIGN_OR_RETURN(attention->gradients_, device.NewArray<float>(size));
  // Matrices [steps, width] of heads side by side, and matrices of weights.
  const auto side_by_side = [heads = heads](int64_t steps, int64_t width) {
    return MatrixBatch{steps * heads * width, width, heads * width, 1};
  };
  const MatrixBatch query = side_by_side(queries, key_width);
  const MatrixBatch key = side_by_side(keys, key_width);
  const MatrixBatch value = side_by_side(keys, value_width);
  const MatrixBatch attended = side_by_side(queries, value_width);
  const MatrixBatch weights = {heads * queries * keys, queries * keys, keys, 1};
  const auto product = [&, n = n, heads = heads](
                           int64_t rows, int64_t inner, int64_t columns,
                           const MatrixBatch& a, const MatrixBatch& b,
                           const MatrixBatch& c) {
    return BatchedProduct::Create(device,
                                  {n, heads, rows, inner, columns, a, b, c});
  };
  ASSIGN_OR_RETURN(attention->scores_, product(queries, key_width, keys, query,
                                               key.Transposed(), weights));
  ASSIGN_OR_RETURN(attention->attended_, product(queries, keys, value_width,
                                                 weights, value, attended));
  ASSIGN_OR_RETURN(attention->by_weights_,
                   product(queries, value_width, keys, attended,
                           value.Transposed(), weights));
  ASSIGN_OR_RETURN(attention->by_value_,
                   product(keys, queries, value_width, weights.Transposed(),
                           attended, value));
  ASSIGN_OR_RETURN(attention->by_query_,
                   product(queries, keys, key_width, weights, key, query));
  ASSIGN_OR_RETURN(
      attention->by_key_,
      product(keys, queries, key_width, weights.Transposed(), query, key));
  return attention;
}

absl::Status Attention::Forward(const Parts& parts, const float* mask,
                                const StoredSeed* seed, float* attended) {
  RETURN_IF_ERROR(scores_->Multiply(parts.query, parts.key, weights_.data()));
  RETURN_IF_ERROR(AttentionWeights(device_, shape_, mask, weights_.data()));
  const float* weights = weights_.data();
  if (sizes_.dropout > 0 && seed != nullptr) {
    RETURN_IF_ERROR(Dropout(device_, sizes_.dropout, *seed, weights,
                            shape_.size(), dropped_.data()));
    weights = dropped_.data();
  }
  return attended_->Multiply(weights, parts.value, attended);
}

absl::Status Attention::Backward(const Parts& parts, const StoredSeed* seed,
                                 const float* attended_gradient,
                                 const Parts& gradients) {
  const bool drops = sizes_.dropout > 0;
  RETURN_IF_ERROR(by_value_->Multiply(drops ? dropped_.data() : weights_.data(),
                                      attended_gradient, gradients.value));
  RETURN_IF_ERROR(
      by_weights_->Multiply(attended_gradient, parts.value, gradients_.data()));
  if (drops) {
    RETURN_IF_ERROR(Dropout(device_, sizes_.dropout, *seed, gradients_.data(),
                            shape_.size(), gradients_.data()));
  }
  RETURN_IF_ERROR(AttentionWeightsGradient(device_, shape_, weights_.data(),
                                           gradients_.data()));
  RETURN_IF_ERROR(
      by_query_->Multiply(gradients_.data(), parts.key, gradients.query));
  return by_key_->Multiply(gradients_.data(), parts.query, gradients.key);
}

}  // namespace parasol
