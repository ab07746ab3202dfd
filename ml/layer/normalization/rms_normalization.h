#ifndef PARASOL_ML_LAYER_NORMALIZATION_RMS_NORMALIZATION_H_
#define PARASOL_ML_LAYER_NORMALIZATION_RMS_NORMALIZATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer keras.layers.RMSNormalization: scale · x / sqrt(mean of x² +
// epsilon) over the last axis. The variable scale (ones) has one number for
// each element of that axis.
//   InvalidArgument  the input is not one tensor, or it is a scalar.
absl::StatusOr<std::unique_ptr<const Layer>> MakeRmsNormalization(
    const job::RmsNormalization& spec, absl::Span<const LayerInput> inputs);

// The kind "rms_normalization" of a job's layers.
extern const LayerKind kRmsNormalizationKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_NORMALIZATION_RMS_NORMALIZATION_H_
