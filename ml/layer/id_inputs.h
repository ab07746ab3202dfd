#ifndef PARASOL_ML_LAYER_ID_INPUTS_H_
#define PARASOL_ML_LAYER_ID_INPUTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// Returns a layer's only input, a list of ids.
//   InvalidArgument  there are several inputs, or the input is a tensor.
absl::StatusOr<LayerInput> OnlyIdInput(absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_ID_INPUTS_H_
