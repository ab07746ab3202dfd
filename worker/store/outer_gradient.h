#ifndef PARASOL_WORKER_STORE_OUTER_GRADIENT_H_
#define PARASOL_WORKER_STORE_OUTER_GRADIENT_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// Writes the outer gradient of a variable's local steps: what they have changed
// (the values at their begin - the values at their end, in float32) times
// `share`. An optimizer that subtracts it as it is arrives at the end.
inline void WriteOuterGradient(absl::Span<const float> begin,
                               absl::Span<const float> end, float share,
                               std::vector<float>& gradient) {
  gradient.resize(end.size());
  for (size_t i = 0; i < end.size(); ++i) {
    gradient[i] = share * (begin[i] - end[i]);
  }
}

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_OUTER_GRADIENT_H_
