#ifndef PARASOL_ML_LAYER_SEQUENCE_ATTENTION_H_
#define PARASOL_ML_LAYER_SEQUENCE_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"
#include "ml/kernel/sequence/attention_weights.h"
#include "ml/kernel/sequence/batched_product.h"

namespace parasol {

struct AttentionSizes {
  int64_t examples = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t key_width = 0;
  int64_t value_width = 0;
  bool causal = false;
  // Numbers of an example's mask, and from one query's to the next's.
  int64_t mask_example = 0;
  int64_t mask_query = 0;
  double dropout = 0;
};

// Scaled dot-product attention by several heads, on one device, with the memory
// for it. Queries are [examples, queries, heads, key width], keys [examples,
// keys, heads, key width], values [examples, keys, heads, value width], and
// what is attended to is [examples, queries, heads, value width]. Not
// thread-safe.
class Attention {
 public:
  // The three arrays, or their gradients.
  struct Parts {
    float* query = nullptr;
    float* key = nullptr;
    float* value = nullptr;
  };

  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<Attention>> Create(
      Device& device, const AttentionSizes& sizes);

  // Writes what is attended to: softmax(query · key / √key width) · value.
  // `mask` is null for none; `seed` is null if nothing is to be dropped.
  absl::Status Forward(const Parts& parts, const float* mask,
                       const StoredSeed* seed, float* attended);

  // Writes the gradients by all parts, after a Forward() with the same parts
  // and seed.
  absl::Status Backward(const Parts& parts, const StoredSeed* seed,
                        const float* attended_gradient, const Parts& gradients);

 private:
  Attention(Device& device, const AttentionSizes& sizes);

  Device& device_;
  const AttentionSizes sizes_;
  const AttentionShape shape_;
  // Arrays [examples, heads, queries, keys].
  Array<float> weights_;
  Array<float> dropped_;  // the weights after dropout; empty without
  Array<float> gradients_;
  // Products, named by what they compute.
  std::unique_ptr<BatchedProduct> scores_;
  std::unique_ptr<BatchedProduct> attended_;
  std::unique_ptr<BatchedProduct> by_weights_;
  std::unique_ptr<BatchedProduct> by_value_;
  std::unique_ptr<BatchedProduct> by_query_;
  std::unique_ptr<BatchedProduct> by_key_;
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_ATTENTION_H_
