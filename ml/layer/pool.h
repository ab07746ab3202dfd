#ifndef PARASOL_ML_LAYER_POOL_H_
#define PARASOL_ML_LAYER_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layers tf.keras.layers.MaxPool2D and AveragePooling2D.
//   InvalidArgument  the input is not an image, or the window does not fit.
absl::StatusOr<std::unique_ptr<const Layer>> MakeMaxPool(
    const job::Pool& spec, absl::Span<const LayerInput> inputs);
absl::StatusOr<std::unique_ptr<const Layer>> MakeAveragePool(
    const job::Pool& spec, absl::Span<const LayerInput> inputs);

// The layer tf.keras.layers.GlobalAveragePooling2D: [height, width, channels]
// to [channels].
//   InvalidArgument  the input is not an image.
absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalAveragePool(
    absl::Span<const LayerInput> inputs);

// The kinds "max_pool", "average_pool" and "global_average_pool" of a job's
// layers.
extern const LayerKind kMaxPoolKind;
extern const LayerKind kAveragePoolKind;
extern const LayerKind kGlobalAveragePoolKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_POOL_H_
