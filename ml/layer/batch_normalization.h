#ifndef PARASOL_ML_LAYER_BATCH_NORMALIZATION_H_
#define PARASOL_ML_LAYER_BATCH_NORMALIZATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.BatchNormalization over all axes but the last.
// Variables, each with one number for each channel: gamma, beta (if the spec
// has them), moving_mean, moving_variance. The last two are not trained; their
// gradients are (1 - momentum) · (moving - batch's), with the batch's unbiased
// variance.
//
// If it is not `trainable` it normalises with the moving moments in training
// too, as Keras's does, and has no gradients of variables.
//   InvalidArgument  the input is not one tensor, or a number is out of range.
absl::StatusOr<std::unique_ptr<const Layer>> MakeBatchNormalization(
    const job::BatchNormalization& spec, absl::Span<const LayerInput> inputs,
    bool trainable = true);

// The kind "batch_normalization" of a job's layers.
extern const LayerKind kBatchNormalizationKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_BATCH_NORMALIZATION_H_
