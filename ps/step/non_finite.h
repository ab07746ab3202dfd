#ifndef PARASOL_PS_STEP_NON_FINITE_H_
#define PARASOL_PS_STEP_NON_FINITE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// What becomes of a push with an element that is infinite or NaN.
enum class NonFinite {
  kReject,  // refused as a whole; costs one more pass over the gradient
  kApply,   // applied as any other
};

// The first of `count` float32 at any alignment that is infinite or NaN; count
// if there is none.
size_t FirstNonFinite(const std::byte* elements, size_t count);

// Of a push that is refused for it: OutOfRange, as a loss that is not finite,
// so that the job ends as one that has failed and not as one set up wrongly.
// `of`: whose gradient; `element`: where in it.
absl::Status NonFiniteError(absl::string_view of, absl::string_view element);

}  // namespace parasol

#endif  // PARASOL_PS_STEP_NON_FINITE_H_
