#ifndef PARASOL_ML_LAYER_DENSE_INPUTS_H_
#define PARASOL_ML_LAYER_DENSE_INPUTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// Returns the shape of a layer's only input.
//   InvalidArgument  there are several inputs, or the input is a list of ids.
absl::StatusOr<Shape> OnlyDenseInput(absl::Span<const LayerInput> inputs);

// Checks that there are inputs, and that all are tensors.
//   InvalidArgument  otherwise.
absl::Status CheckDenseInputs(absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_DENSE_INPUTS_H_
