#ifndef PARASOL_PS_NON_FINITE_H_
#define PARASOL_PS_NON_FINITE_H_

#include <cstddef>

namespace parasol {

// What becomes of a push with an element that is infinite or NaN.
enum class NonFinite {
  kReject,  // refused as a whole; costs one more pass over the gradient
  kApply,   // applied as any other
};

// The first of `count` float32 at any alignment that is infinite or NaN; count
// if there is none.
size_t FirstNonFinite(const std::byte* elements, size_t count);

}  // namespace parasol

#endif  // PARASOL_PS_NON_FINITE_H_
