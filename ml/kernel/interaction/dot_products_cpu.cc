#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/interaction/dot_products.h"

namespace parasol::cpu {
namespace {

[[gnu::always_inline]] inline float Dot(const float* a, const float* b,
                                        int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < width; ++k) sum += a[k] * b[k];
  return sum;
}

[[gnu::always_inline]] inline float ScaleOf(const ScaledRows& rows,
                                            int64_t row) {
  return rows.scales == nullptr ? 1.0f : rows.scales[row];
}

PARASOL_MULTIVERSION void Norms(int64_t rows, int64_t width, const float* x,
                                float* scales) {
  for (int64_t i = 0; i < rows; ++i) {
    const float squares = Dot(x + i * width, x + i * width, width);
    // A comparison with NaN is false.
    scales[i] =
        squares <= kSmallestSquares ? kLargestScale : 1.0f / std::sqrt(squares);
  }
}

PARASOL_MULTIVERSION void Products(const RowPairs& shape, const ScaledRows& a,
                                   const ScaledRows& b, int64_t example,
                                   float* y) {
  for (int64_t i = 0; i < shape.a_rows; ++i) {
    const int64_t a_row = example * shape.a_rows + i;
    const float* const x = a.values + a_row * shape.width;
    const float scale = ScaleOf(a, a_row);
    for (int64_t j = 0; j < shape.b_rows; ++j) {
      const int64_t b_row = example * shape.b_rows + j;
      *y++ = Dot(x, b.values + b_row * shape.width, shape.width) *
             (scale * ScaleOf(b, b_row));
    }
  }
}

// One side of the products seen from the other: the gradient is by `of`. An
// element of y and dy is at own · own_stride + other · other_stride.
struct Side {
  ScaledRows of;
  ScaledRows others;
  int64_t rows;
  int64_t other_rows;
  int64_t width;
  int64_t own_stride;
  int64_t other_stride;
};

PARASOL_MULTIVERSION void Gradient(const Side& side, int64_t example,
                                   const float* y, const float* dy, float* dx) {
  for (int64_t i = 0; i < side.rows; ++i) {
    const int64_t row = example * side.rows + i;
    const float scale = ScaleOf(side.of, row);
    const bool is_normalized =
        side.of.scales != nullptr && scale != kLargestScale;
    float* const to = dx + row * side.width;
    std::fill_n(to, side.width, 0.0f);
    float along = 0;  // Σ_j dy · y
    for (int64_t j = 0; j < side.other_rows; ++j) {
      const int64_t other = example * side.other_rows + j;
      const int64_t at = i * side.own_stride + j * side.other_stride;
      const float factor = dy[at] * ScaleOf(side.others, other);
      const float* const values = side.others.values + other * side.width;
      along += dy[at] * y[at];
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t k = 0; k < side.width; ++k) to[k] += factor * values[k];
    }
    const float* const x = side.of.values + row * side.width;
    const float back = is_normalized ? along * scale : 0.0f;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t k = 0; k < side.width; ++k) {
      to[k] = scale * (to[k] - back * x[k]);
    }
  }
}

}  // namespace

absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales) {
  Norms(rows, width, x, scales);
  return absl::OkStatus();
}

absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y) {
  for (int64_t i = 0; i < shape.examples; ++i) {
    Products(shape, a, b, i, y + i * shape.a_rows * shape.b_rows);
  }
  return absl::OkStatus();
}

absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db) {
  const Side sides[] = {
      {a, b, shape.a_rows, shape.b_rows, shape.width, shape.b_rows, 1},
      {b, a, shape.b_rows, shape.a_rows, shape.width, 1, shape.b_rows}};
  float* const gradients[] = {da, db};
  const int64_t products = shape.a_rows * shape.b_rows;
  for (int i = 0; i < 2; ++i) {
    if (gradients[i] == nullptr) continue;
    for (int64_t e = 0; e < shape.examples; ++e) {
      Gradient(sides[i], e, y + e * products, dy + e * products, gradients[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
