#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_WHOLE_VALUE_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_WHOLE_VALUE_H_

#include <cstddef>
#include <cstdint>

namespace parasol {

// Returns what a replica contributes to an element when plans are tried: whole
// numbers, so that a sum is exact in every order, and tells which contributions
// are in it.
inline float WholeValue(int replica, size_t element) {
  const auto number = static_cast<uint64_t>(replica) * 7919 + element * 104729;
  return static_cast<float>(number % 4093 + 1);
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_WHOLE_VALUE_H_
