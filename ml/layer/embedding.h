#ifndef PARASOL_ML_LAYER_EMBEDDING_H_
#define PARASOL_ML_LAYER_EMBEDDING_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// Rows of a table: [ids of an example, table_width]; of a sequence [its steps,
// table_width], 0 in a step without an id. Weights of ids are not read.
//   InvalidArgument  the input is not one list of ids that is a sequence, or
//                    has as many ids in each example.
absl::StatusOr<std::unique_ptr<const Layer>> MakeEmbedding(
    const job::Embedding& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width);

// The kind "embedding" of a job's layers.
extern const LayerKind kEmbeddingKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_EMBEDDING_H_
