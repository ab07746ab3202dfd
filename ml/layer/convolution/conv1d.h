#ifndef PARASOL_ML_LAYER_CONVOLUTION_CONV1D_H_
#define PARASOL_ML_LAYER_CONVOLUTION_CONV1D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.Conv1D over [steps, channels]: variables kernel
// [kernel size, channels, filters] and bias [filters]. Computed as a
// convolution of images of one row; a dilated kernel has zeros between its
// elements there.
//   InvalidArgument  the input is not [steps, channels], or no window fits.
absl::StatusOr<std::unique_ptr<const Layer>> MakeConv1D(
    const job::Conv1D& spec, absl::Span<const LayerInput> inputs);

// The kind "conv1d" of a job's layers.
extern const LayerKind kConv1DKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_CONV1D_H_
