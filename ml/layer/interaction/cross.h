#ifndef PARASOL_ML_LAYER_INTERACTION_CROSS_H_
#define PARASOL_ML_LAYER_INTERACTION_CROSS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// One layer of a cross network (Wang et al., "DCN V2", 2020):
//
//   y = x0 ⊙ (x · W + bias) + x
//
// for inputs x0 and x, both [width], or for one input that is both. Variables
// are kernel [width, width] (W) and bias [width]; with projection_dim r the
// rank of W is r: W = u_kernel [width, r] · kernel [r, width]. Names and
// defaults are as in TensorFlow Recommenders' Cross, but for the initializer,
// glorot_uniform.
//   InvalidArgument  the inputs are not one or two flat tensors of one width,
//                    or projection_dim is not in 1 to width: says why.
absl::StatusOr<std::unique_ptr<const Layer>> MakeCross(
    const job::Cross& spec, absl::Span<const LayerInput> inputs);

// The kind "cross" of a job's layers.
extern const LayerKind kCrossKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_INTERACTION_CROSS_H_
