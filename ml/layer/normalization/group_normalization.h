#ifndef PARASOL_ML_LAYER_NORMALIZATION_GROUP_NORMALIZATION_H_
#define PARASOL_ML_LAYER_NORMALIZATION_GROUP_NORMALIZATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.GroupNormalization over [..., channels]: gamma · (x
// - mean) / sqrt(variance + epsilon) + beta, with the moments of each example's
// groups of neighbouring channels over all other axes. Variables are gamma
// (ones) and beta (zeros), with one number for each channel.
//   InvalidArgument  the input is a scalar, or `groups` does not divide the
//                    channels.
absl::StatusOr<std::unique_ptr<const Layer>> MakeGroupNormalization(
    const job::GroupNormalization& spec, absl::Span<const LayerInput> inputs);

// The kind "group_normalization" of a job's layers.
extern const LayerKind kGroupNormalizationKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_NORMALIZATION_GROUP_NORMALIZATION_H_
