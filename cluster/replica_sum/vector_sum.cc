#include "cluster/replica_sum/vector_sum.h"

#include <cstring>

#include "base/multiversion.h"

namespace parasol {
namespace {

PARASOL_MULTIVERSION void Add(float* sum, const std::byte* addend,
                              size_t count) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    float element;
    std::memcpy(&element, addend + i * sizeof(float), sizeof(float));
    sum[i] += element;
  }
}

PARASOL_MULTIVERSION void Divide(float* values, size_t count, float divisor) {
  for (size_t i = 0; i < count; ++i) values[i] /= divisor;
}

}  // namespace

void AddTo(absl::Span<float> sum, const std::byte* addend) {
  Add(sum.data(), addend, sum.size());
}

void DivideBy(absl::Span<float> values, float divisor) {
  if (divisor != 1) Divide(values.data(), values.size(), divisor);
}

}  // namespace parasol
