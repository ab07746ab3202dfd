#ifndef PARASOL_TOOL_CHECKPOINT_FINITE_OR_NULL_H_
#define PARASOL_TOOL_CHECKPOINT_FINITE_OR_NULL_H_

#include <cmath>

#include "nlohmann/json.hpp"

namespace parasol {

// Returns `value`, or null if it is not finite: JSON has no such numbers.
inline nlohmann::ordered_json FiniteOrNull(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_FINITE_OR_NULL_H_
