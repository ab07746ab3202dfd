#ifndef PARASOL_ML_LAYER_LAYER_NORMALIZATION_H_
#define PARASOL_ML_LAYER_LAYER_NORMALIZATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer y = gamma · (x - mean) / sqrt(variance + epsilon) + beta over the
// last axis. Variables are gamma (ones) and beta (zeros), with one number for
// each element of that axis.
//   InvalidArgument  the input is not one tensor, or it is a scalar.
absl::StatusOr<std::unique_ptr<const Layer>> MakeLayerNormalization(
    const job::LayerNormalization& spec, absl::Span<const LayerInput> inputs);

// The kind "layer_normalization" of a job's layers.
extern const LayerKind kLayerNormalizationKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_LAYER_NORMALIZATION_H_
