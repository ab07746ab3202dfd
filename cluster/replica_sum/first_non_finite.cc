#include "cluster/replica_sum/first_non_finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

namespace parasol {
namespace {

constexpr uint32_t kExponent = 0x7f800000;
constexpr uint32_t kExponentStep = 0x00800000;

uint32_t BitsOf(const std::byte* elements, size_t i) {
  uint32_t bits;
  std::memcpy(&bits, elements + i * sizeof(bits), sizeof(bits));
  return bits;
}

// An exponent of all ones, and no other, carries into the sign.
PARASOL_MULTIVERSION bool AnyNonFinite(const std::byte* elements,
                                       size_t count) {
  uint32_t carries = 0;
  for (size_t i = 0; i < count; ++i) {
    carries |= (BitsOf(elements, i) & kExponent) + kExponentStep;
  }
  return carries >> 31 != 0;
}

}  // namespace

size_t FirstNonFinite(const std::byte* elements, size_t count) {
  constexpr size_t kBlock = 4096;
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t last = std::min(count, first + kBlock);
    if (!AnyNonFinite(elements + first * sizeof(float), last - first)) continue;
    for (size_t i = first; i < last; ++i) {
      if ((BitsOf(elements, i) & kExponent) == kExponent) return i;
    }
  }
  return count;
}

}  // namespace parasol
