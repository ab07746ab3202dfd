#ifndef PARASOL_ML_LAYER_RESHAPE_H_
#define PARASOL_ML_LAYER_RESHAPE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The elements of its input in their order, in another shape. One axis of the
// spec may be -1: what the others leave. The layer is a view.
//   InvalidArgument  the input is not one tensor, or has another number of
//                    elements: names both shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeReshape(
    const job::Reshape& spec, absl::Span<const LayerInput> inputs);

// The kind "reshape" of a job's layers.
extern const LayerKind kReshapeKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_RESHAPE_H_
