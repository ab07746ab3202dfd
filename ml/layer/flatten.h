#ifndef PARASOL_ML_LAYER_FLATTEN_H_
#define PARASOL_ML_LAYER_FLATTEN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"

namespace parasol {

// The one input, seen as one axis.
//   InvalidArgument  the layer does not fit the inputs: says why.
absl::StatusOr<std::unique_ptr<const Layer>> MakeFlatten(
    absl::Span<const LayerInput> inputs);

// The kind "flatten" of a job's layers.
extern const LayerKind kFlattenKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FLATTEN_H_
