#ifndef PARASOL_PS_STEP_NON_FINITE_H_
#define PARASOL_PS_STEP_NON_FINITE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The treatment of a push with an element that is infinite or NaN.
enum class NonFinite {
  kReject,  // refused as a whole; costs one more pass over the gradient
  kApply,   // applied like any other
};

// Returns the error of a push that is refused: OutOfRange, as for a loss that
// is not finite, so that the job ends as failed and not as set up wrongly. `of`
// names the gradient's variable or table; `element` says where in it the
// element is.
absl::Status NonFiniteError(absl::string_view of, absl::string_view element);

}  // namespace parasol

#endif  // PARASOL_PS_STEP_NON_FINITE_H_
