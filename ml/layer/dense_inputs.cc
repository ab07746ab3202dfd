#include "ml/layer/dense_inputs.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status CheckDenseInputs(absl::Span<const LayerInput> inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind == LayerInput::Kind::kDense) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", i,
        " is a list of ids: put an embedding or embedding_bag before"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> OnlyDenseInput(absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes one input, not ", inputs.size()));
  }
  return inputs[0].shape;
}

}  // namespace parasol
