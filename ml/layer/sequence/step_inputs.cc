#include "ml/layer/sequence/step_inputs.h"

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {

absl::StatusOr<StepInputs> StepInputsOf(absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes [steps, channels] and a mask [steps], not ",
                     inputs.size(), " inputs"));
  }
  const Shape& shape = inputs[0].shape;
  if (shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs [steps, channels], not ", ShapeText(shape)));
  }
  const bool masked = inputs.size() == 2;
  if (masked && inputs[1].shape != Shape{shape[0]}) {
    return absl::InvalidArgumentError(
        absl::StrCat("the mask of [steps, channels] ", ShapeText(shape),
                     " is [", shape[0], "], not ", ShapeText(inputs[1].shape)));
  }
  return StepInputs{.steps = shape[0], .channels = shape[1], .masked = masked};
}

}  // namespace parasol
