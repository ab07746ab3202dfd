#ifndef PARASOL_TESTS_BENCHMARK_TRIAD_H_
#define PARASOL_TESTS_BENCHMARK_TRIAD_H_

#include "absl/types/span.h"

namespace parasol {

// Adds a multiple of `a` to each element of b, c and d, all of one size: four
// streams read, three written, and next to nothing computed.
void Triad(absl::Span<const float> a, absl::Span<float> b, absl::Span<float> c,
           absl::Span<float> d);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TRIAD_H_
