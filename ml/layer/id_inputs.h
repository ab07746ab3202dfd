#ifndef PARASOL_ML_LAYER_ID_INPUTS_H_
#define PARASOL_ML_LAYER_ID_INPUTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// Returns a layer's only input, a list of ids.
//   InvalidArgument  there are several inputs, or the input is a tensor.
absl::StatusOr<LayerInput> OnlyIdInput(absl::Span<const LayerInput> inputs);

// Returns the number of steps of a list of ids that is a sequence, which is the
// input's shape; 0 if the ids have no order.
inline int64_t StepsOf(const LayerInput& ids) {
  return ids.shape.empty() ? 0 : ids.shape[0];
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_ID_INPUTS_H_
