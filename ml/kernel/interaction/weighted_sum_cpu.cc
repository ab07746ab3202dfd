#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/interaction/weighted_sum.h"

namespace parasol::cpu {
namespace {

PARASOL_MULTIVERSION void Sum(const WeightedRows& shape, const float* w,
                              const float* x, float* y) {
  std::fill_n(y, shape.width, 0.0f);
  for (int64_t n = 0; n < shape.count; ++n) {
    const float factor = w[n];
    const float* const row = x + n * shape.width;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t k = 0; k < shape.width; ++k) y[k] += factor * row[k];
  }
}

PARASOL_MULTIVERSION void WeightGradients(const WeightedRows& shape,
                                          const float* x, const float* dy,
                                          float* dw) {
  for (int64_t n = 0; n < shape.count; ++n) {
    const float* const row = x + n * shape.width;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < shape.width; ++k) sum += dy[k] * row[k];
    dw[n] = sum;
  }
}

PARASOL_MULTIVERSION void RowGradients(const WeightedRows& shape,
                                       const float* w, const float* dy,
                                       float* dx) {
  for (int64_t n = 0; n < shape.count; ++n) {
    const float factor = w[n];
    float* const row = dx + n * shape.width;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t k = 0; k < shape.width; ++k) row[k] = factor * dy[k];
  }
}

}  // namespace

absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y) {
  for (int64_t i = 0; i < shape.examples; ++i) {
    Sum(shape, w + i * shape.count, x + i * shape.count * shape.width,
        y + i * shape.width);
  }
  return absl::OkStatus();
}

absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx) {
  const int64_t elements = shape.count * shape.width;
  for (int64_t i = 0; i < shape.examples; ++i) {
    const float* const dy_of = dy + i * shape.width;
    if (dw != nullptr) {
      WeightGradients(shape, x + i * elements, dy_of, dw + i * shape.count);
    }
    if (dx != nullptr) {
      RowGradients(shape, w + i * shape.count, dy_of, dx + i * elements);
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
