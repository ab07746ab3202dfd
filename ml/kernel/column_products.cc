#include "ml/kernel/column_products.h"

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/device/parallel.h"

namespace parasol::cpu {
namespace {

// Number of partial sums of a product of two vectors: a vector of AVX-512.
constexpr int64_t kLanes = 16;
// Number of rows that a loop reads side by side.
constexpr int64_t kRowsAtOnce = 4;
// Elements that a thread reads in about 10 µs.
constexpr int64_t kGrain = 1 << 16;

int64_t RowGrain(MatrixView x) {
  return std::max<int64_t>(kGrain / std::max<int64_t>(x.columns, 1), 1);
}

// Returns the sum of `lanes`, to which the products of x and w from `begin` on
// are added.
__attribute__((always_inline)) inline float Finish(const float* x,
                                                   const float* w,
                                                   int64_t begin, int64_t end,
                                                   float* lanes) {
  for (int64_t i = begin; i < end; ++i) lanes[i - begin] += x[i] * w[i];
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      lanes[lane] += lanes[half + lane];
    }
  }
  return lanes[0];
}

PARASOL_MULTIVERSION
void DotRows(const float* x, int64_t rows, int64_t columns, const float* w,
             float* y) {
  const int64_t whole = columns / kLanes * kLanes;
  int64_t row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    const float* const a = x + row * columns;
    const float* const b = a + columns;
    const float* const c = b + columns;
    const float* const d = c + columns;
    float of_a[kLanes] = {}, of_b[kLanes] = {};
    float of_c[kLanes] = {}, of_d[kLanes] = {};
    for (int64_t i = 0; i < whole; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        of_a[lane] += a[i + lane] * w[i + lane];
        of_b[lane] += b[i + lane] * w[i + lane];
        of_c[lane] += c[i + lane] * w[i + lane];
        of_d[lane] += d[i + lane] * w[i + lane];
      }
    }
    y[row] = Finish(a, w, whole, columns, of_a);
    y[row + 1] = Finish(b, w, whole, columns, of_b);
    y[row + 2] = Finish(c, w, whole, columns, of_c);
    y[row + 3] = Finish(d, w, whole, columns, of_d);
  }
  for (; row < rows; ++row) {
    const float* const in = x + row * columns;
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < whole; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += in[i + lane] * w[i + lane];
      }
    }
    y[row] = Finish(in, w, whole, columns, lanes);
  }
}

// Writes the columns [begin, end).
PARASOL_MULTIVERSION
void SumScaledRows(MatrixView x, const float* y, int64_t begin, int64_t end,
                   float* w) {
  std::fill(w + begin, w + end, 0.0f);
  int64_t row = 0;
  for (; row + kRowsAtOnce <= x.rows; row += kRowsAtOnce) {
    const float* const a = x.data + row * x.columns;
    const float* const b = a + x.columns;
    const float* const c = b + x.columns;
    const float* const d = c + x.columns;
    const float* const by = y + row;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      w[i] = w[i] + a[i] * by[0] + b[i] * by[1] + c[i] * by[2] + d[i] * by[3];
    }
  }
  for (; row < x.rows; ++row) {
    const float* const in = x.data + row * x.columns;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) w[i] += in[i] * y[row];
  }
}

PARASOL_MULTIVERSION
void ScaleIntoRows(const float* y, int64_t rows, const float* w,
                   int64_t columns, float* x) {
  for (int64_t row = 0; row < rows; ++row, x += columns) {
    const float scale = y[row];
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < columns; ++i) x[i] = scale * w[i];
  }
}

}  // namespace

void MultiplyByColumn(Device& device, MatrixView x, const float* w, float* y) {
  ParallelFor(device, x.rows, RowGrain(x),
              [&](int64_t /*part*/, int64_t begin, int64_t end) {
                DotRows(x.data + begin * x.columns, end - begin, x.columns, w,
                        y + begin);
              });
}

void MultiplyRowsByColumn(Device& device, MatrixView x, const float* y,
                          float* w) {
  const int64_t grain =
      std::max<int64_t>(kGrain / std::max<int64_t>(x.rows, 1), kLanes);
  ParallelFor(device, x.columns, grain,
              [&](int64_t /*part*/, int64_t begin, int64_t end) {
                SumScaledRows(x, y, begin, end, w);
              });
}

void MultiplyColumnByRow(Device& device, const float* y, const float* w,
                         MutableMatrixView x) {
  ParallelFor(device, x.rows, RowGrain(x),
              [&](int64_t /*part*/, int64_t begin, int64_t end) {
                ScaleIntoRows(y + begin, end - begin, w, x.columns,
                              x.data + begin * x.columns);
              });
}

}  // namespace parasol::cpu
