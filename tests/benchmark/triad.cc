#include "tests/benchmark/triad.h"

#include <cstddef>

#include "base/multiversion.h"

namespace parasol {
namespace {

PARASOL_MULTIVERSION
void TriadOf(size_t count, const float* a, float* b, float* c, float* d) {
  constexpr float kFactor = 1e-3f;
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    // All reads first: the arrays lie whole pages apart, and a read behind a
    // write to the same place in another page waits for it.
    const float add = kFactor * a[i];
    const float next_b = b[i] + add;
    const float next_c = c[i] + add;
    const float next_d = d[i] + add;
    b[i] = next_b;
    c[i] = next_c;
    d[i] = next_d;
  }
}

}  // namespace

void Triad(absl::Span<const float> a, absl::Span<float> b, absl::Span<float> c,
           absl::Span<float> d) {
  TriadOf(a.size(), a.data(), b.data(), c.data(), d.data());
}

}  // namespace parasol
