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
    b[i] += kFactor * a[i];
    c[i] += kFactor * a[i];
    d[i] += kFactor * a[i];
  }
}

}  // namespace

void Triad(absl::Span<const float> a, absl::Span<float> b, absl::Span<float> c,
           absl::Span<float> d) {
  TriadOf(a.size(), a.data(), b.data(), c.data(), d.data());
}

}  // namespace parasol
