#ifndef PARASOL_ML_LAYER_SEQUENCE_GLOBAL_STEP_POOL_H_
#define PARASOL_ML_LAYER_SEQUENCE_GLOBAL_STEP_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layers tf.keras.layers.GlobalAveragePooling1D and GlobalMaxPooling1D:
// [steps, channels], and perhaps a mask [steps], to [channels]. Steps whose
// number in the mask is not above .5 do not count; where none does, the result
// is 0.
//   InvalidArgument  the inputs have other shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalAveragePool1D(
    absl::Span<const LayerInput> inputs);
absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalMaxPool1D(
    absl::Span<const LayerInput> inputs);

// The kinds "global_average_pool1d" and "global_max_pool1d" of a job's layers.
extern const LayerKind kGlobalAveragePool1DKind;
extern const LayerKind kGlobalMaxPool1DKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_GLOBAL_STEP_POOL_H_
