#ifndef PARASOL_ML_LAYER_CONVOLUTION_CONV2D_TRANSPOSE_H_
#define PARASOL_ML_LAYER_CONVOLUTION_CONV2D_TRANSPOSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.Conv2DTranspose: variables kernel [height, width,
// filters, channels] and bias [filters]. It is the input's gradient of the
// convolution that FitTransposedWindow() describes.
//   InvalidArgument  the input is not an image, or the output is too large.
absl::StatusOr<std::unique_ptr<const Layer>> MakeConv2DTranspose(
    const job::Conv2DTranspose& spec, absl::Span<const LayerInput> inputs);

// The kind "conv2d_transpose" of a job's layers.
extern const LayerKind kConv2DTransposeKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_CONV2D_TRANSPOSE_H_
