#ifndef PARASOL_ML_LAYER_INTERACTION_DOT_H_
#define PARASOL_ML_LAYER_INTERACTION_DOT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The dot products of two inputs along their last axes, as
// tf.keras.layers.Dot(axes=-1): [width] and [width] give [1]; [n, width] and
// [m, width] give [n, m]; [width] and [m, width] give [m], and the other way
// round. With `normalize` each vector is first divided by its L2 norm, as by
// tf.math.l2_normalize.
//   InvalidArgument  the inputs are not two tensors of these shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDot(
    const job::Dot& spec, absl::Span<const LayerInput> inputs);

// The kind "dot" of a job's layers.
extern const LayerKind kDotKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_INTERACTION_DOT_H_
