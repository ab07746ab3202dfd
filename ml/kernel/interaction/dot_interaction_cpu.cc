#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/interaction/dot_interaction.h"

namespace parasol::cpu {
namespace {

PARASOL_MULTIVERSION void Products(const FieldPairs& shape, const float* x,
                                   float* y) {
  for (int64_t f = 0; f < shape.fields; ++f) {
    const float* const a = x + f * shape.width;
    const int64_t others = shape.with_itself ? f + 1 : f;
    for (int64_t g = 0; g < others; ++g) {
      const float* const b = x + g * shape.width;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t k = 0; k < shape.width; ++k) sum += a[k] * b[k];
      *y++ = sum;
    }
  }
}

// Adds factor · b to a, which are different rows.
[[gnu::always_inline]] inline void AddScaled(float factor, const float* b,
                                             int64_t width, float* a) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t k = 0; k < width; ++k) a[k] += factor * b[k];
}

// x[f] · x[f] has the gradient 2 · x[f]: both rows of the pair are the same.
PARASOL_MULTIVERSION void Gradient(const FieldPairs& shape, const float* x,
                                   const float* dy, float* dx) {
  std::fill_n(dx, shape.fields * shape.width, 0.0f);
  for (int64_t f = 0; f < shape.fields; ++f) {
    const int64_t others = shape.with_itself ? f + 1 : f;
    for (int64_t g = 0; g < others; ++g) {
      const float factor = *dy++;
      AddScaled(factor, x + g * shape.width, shape.width, dx + f * shape.width);
      AddScaled(factor, x + f * shape.width, shape.width, dx + g * shape.width);
    }
  }
}

}  // namespace

absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y) {
  for (int64_t i = 0; i < shape.examples; ++i) {
    Products(shape, x + i * shape.fields * shape.width, y + i * shape.count());
  }
  return absl::OkStatus();
}

absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy,
                                    float* dx) {
  const int64_t elements = shape.fields * shape.width;
  for (int64_t i = 0; i < shape.examples; ++i) {
    Gradient(shape, x + i * elements, dy + i * shape.count(),
             dx + i * elements);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
