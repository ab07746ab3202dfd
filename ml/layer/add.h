#ifndef PARASOL_ML_LAYER_ADD_H_
#define PARASOL_ML_LAYER_ADD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"

namespace parasol {

// The sum of its inputs, all of one shape. Has a form with a relu.
//   InvalidArgument  an input is not dense, or their shapes differ.
absl::StatusOr<std::unique_ptr<const Layer>> MakeAdd(
    absl::Span<const LayerInput> inputs);

// The kind "add" of a job's layers.
extern const LayerKind kAddKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_ADD_H_
