#ifndef PARASOL_ML_LAYER_SEQUENCE_STEP_INPUTS_H_
#define PARASOL_ML_LAYER_SEQUENCE_STEP_INPUTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// The inputs of a layer over steps: [steps, channels], and a mask [steps] or
// none.
struct StepInputs {
  int64_t steps = 0;
  int64_t channels = 0;
  bool masked = false;
};

// Returns the sizes of a layer's inputs, of which a second one is its mask.
//   InvalidArgument  they are not those: names their shapes.
absl::StatusOr<StepInputs> StepInputsOf(absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_STEP_INPUTS_H_
