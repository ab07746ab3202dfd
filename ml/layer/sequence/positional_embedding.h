#ifndef PARASOL_ML_LAYER_SEQUENCE_POSITIONAL_EMBEDDING_H_
#define PARASOL_ML_LAYER_SEQUENCE_POSITIONAL_EMBEDDING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// A layer that adds a vector for each step to [steps, width]: the variable
// embeddings [steps, width], or keras_hub's SinePositionEncoding.
//   InvalidArgument  the input is not [steps, width].
absl::StatusOr<std::unique_ptr<const Layer>> MakePositionalEmbedding(
    const job::PositionalEmbedding& spec, absl::Span<const LayerInput> inputs);

// The kind "positional_embedding" of a job's layers.
extern const LayerKind kPositionalEmbeddingKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_POSITIONAL_EMBEDDING_H_
