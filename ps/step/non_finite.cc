#include "ps/step/non_finite.h"

#include "absl/strings/str_cat.h"

namespace parasol {

absl::Status NonFiniteError(absl::string_view of, absl::string_view element) {
  return absl::OutOfRangeError(absl::StrCat(
      "the gradient of ", of, " is not finite at element ", element,
      ": lower the learning rate, or start ps with "
      "--nonfinite_gradients=apply"));
}

}  // namespace parasol
