#include "ml/layer/id_inputs.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {

absl::StatusOr<LayerInput> OnlyIdInput(absl::Span<const LayerInput> inputs) {
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes one input, not ", inputs.size()));
  }
  if (inputs[0].kind != LayerInput::Kind::kIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes a list of ids, not a tensor [",
                     absl::StrJoin(inputs[0].shape, ", "), "]"));
  }
  return inputs[0];
}

}  // namespace parasol
