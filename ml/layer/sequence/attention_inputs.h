#ifndef PARASOL_ML_LAYER_SEQUENCE_ATTENTION_INPUTS_H_
#define PARASOL_ML_LAYER_SEQUENCE_ATTENTION_INPUTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// The inputs of a multi_head_attention: [queries, query width], [keys, value
// width], [keys, key width] and a mask. `value`, `key` and `mask` are their
// places among the layer's inputs; one input may be several of them.
struct AttentionInputs {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t query_width = 0;
  int64_t key_width = 0;
  int64_t value_width = 0;
  int value = 0;
  int key = 0;
  int mask = -1;  // -1: none
  // Numbers of an example's mask, and from one query's to the next's: 0 if the
  // mask is [keys].
  int64_t mask_size = 0;
  int64_t mask_query = 0;
};

// Returns what the inputs are; `spec` has its defaults filled in.
//   InvalidArgument  they don't fit each other or the spec: names the shapes.
absl::StatusOr<AttentionInputs> FitAttention(
    const job::MultiHeadAttention& spec, absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_ATTENTION_INPUTS_H_
