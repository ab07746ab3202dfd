#ifndef PARASOL_ML_LAYER_EMBEDDING_BAG_H_
#define PARASOL_ML_LAYER_EMBEDDING_BAG_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The weighted rows of an example's ids, added up or averaged: [table_width].
// Variable bias [table_width] (zeros), if spec.use_bias().
//   InvalidArgument  the input is not one list of ids.
absl::StatusOr<std::unique_ptr<const Layer>> MakeEmbeddingBag(
    const job::EmbeddingBag& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width);

// The kind "embedding_bag" of a job's layers.
extern const LayerKind kEmbeddingBagKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_EMBEDDING_BAG_H_
