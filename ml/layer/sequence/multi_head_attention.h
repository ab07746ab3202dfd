#ifndef PARASOL_ML_LAYER_SEQUENCE_MULTI_HEAD_ATTENTION_H_
#define PARASOL_ML_LAYER_SEQUENCE_MULTI_HEAD_ATTENTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.MultiHeadAttention. Inputs are the queries
// [queries, width], which are the values, too, if there is no other; the values
// [values, width]; the keys [values, width], the values by default; and if
// `masked`, a mask [values] or [queries, values] as the last. The output is
// [queries, output width].
//
// Variables are query/kernel [width, heads, key width], query/bias [heads, key
// width], key/kernel, key/bias, value/kernel, value/bias,
// attention_output/kernel [heads, value width, output width] and
// attention_output/bias.
//   InvalidArgument  the inputs have other shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeMultiHeadAttention(
    const job::MultiHeadAttention& spec, absl::Span<const LayerInput> inputs);

// The kind "multi_head_attention" of a job's layers.
extern const LayerKind kMultiHeadAttentionKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_MULTI_HEAD_ATTENTION_H_
