#ifndef PARASOL_ML_LAYER_CONV2D_H_
#define PARASOL_ML_LAYER_CONV2D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.Conv2D: variables kernel [height, width, channels,
// filters] and bias [filters].
//   InvalidArgument  the input is not an image, or the window does not fit.
absl::StatusOr<std::unique_ptr<const Layer>> MakeConv2D(
    const job::Conv2D& spec, absl::Span<const LayerInput> inputs);

// The kind "conv2d" of a job's layers.
extern const LayerKind kConv2DKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONV2D_H_
