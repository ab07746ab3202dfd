#ifndef PARASOL_ML_LAYER_CONVOLUTION_SEPARABLE_CONV2D_H_
#define PARASOL_ML_LAYER_CONVOLUTION_SEPARABLE_CONV2D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.SeparableConv2D: variables depthwise_kernel
// [height, width, channels, depth multiplier], pointwise_kernel [1, 1, channels
// · depth multiplier, filters] and bias [filters].
//   InvalidArgument  the input is not an image, or the window does not fit.
absl::StatusOr<std::unique_ptr<const Layer>> MakeSeparableConv2D(
    const job::SeparableConv2D& spec, absl::Span<const LayerInput> inputs);

// The kind "separable_conv2d" of a job's layers.
extern const LayerKind kSeparableConv2DKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_SEPARABLE_CONV2D_H_
