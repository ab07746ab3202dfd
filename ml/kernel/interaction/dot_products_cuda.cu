#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/interaction/dot_products.h"

namespace parasol::cuda {
namespace {

__device__ float ScaleOf(const ScaledRows& rows, int64_t row) {
  return rows.scales == nullptr ? 1.0f : rows.scales[row];
}

__device__ float LaneDot(const float* a, const float* b, int64_t width,
                         int lane) {
  float sum = 0;
  for (int64_t k = lane; k < width; k += kWarpSize) sum += a[k] * b[k];
  return WarpSum(sum);
}

struct InverseNormOf {
  int64_t width;
  const float* x;
  float* scales;
  __device__ void operator()(int64_t row, int lane) const {
    const float* const values = x + row * width;
    const float squares = LaneDot(values, values, width, lane);
    if (lane != 0) return;
    scales[row] =
        squares <= kSmallestSquares ? kLargestScale : 1.0f / sqrtf(squares);
  }
};

// The product number `product` = (example, i, j).
struct PairProductOf {
  RowPairs shape;
  ScaledRows a;
  ScaledRows b;
  float* y;
  __device__ void operator()(int64_t product, int lane) const {
    const int64_t a_row = product / shape.b_rows;
    const int64_t b_row =
        a_row / shape.a_rows * shape.b_rows + product % shape.b_rows;
    const float sum =
        LaneDot(a.values + a_row * shape.width, b.values + b_row * shape.width,
                shape.width, lane);
    if (lane == 0) y[product] = sum * (ScaleOf(a, a_row) * ScaleOf(b, b_row));
  }
};

// The gradient of one row of the side `of`; as Side of the CPU version.
struct RowGradientOf {
  ScaledRows of;
  ScaledRows others;
  int64_t rows;
  int64_t other_rows;
  int64_t width;
  int64_t own_stride;
  int64_t other_stride;
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t row, int lane) const {
    const int64_t example = row / rows;
    const int64_t first = example * rows * other_rows + row % rows * own_stride;
    const float scale = ScaleOf(of, row);
    float along = 0;
    for (int64_t j = lane; j < other_rows; j += kWarpSize) {
      along += dy[first + j * other_stride] * y[first + j * other_stride];
    }
    along = WarpSum(along);
    const bool is_normalized = of.scales != nullptr && scale != kLargestScale;
    const float back = is_normalized ? along * scale : 0.0f;
    for (int64_t k = lane; k < width; k += kWarpSize) {
      float sum = 0;
      for (int64_t j = 0; j < other_rows; ++j) {
        const int64_t other = example * other_rows + j;
        sum += dy[first + j * other_stride] * ScaleOf(others, other) *
               others.values[other * width + k];
      }
      dx[row * width + k] = scale * (sum - back * of.values[row * width + k]);
    }
  }
};

}  // namespace

absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales) {
  return ForEachRow(device, "inverse norms", rows,
                    InverseNormOf{width, x, scales});
}

absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y) {
  return ForEachRow(device, "dot products",
                    shape.examples * shape.a_rows * shape.b_rows,
                    PairProductOf{shape, a, b, y});
}

absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db) {
  if (da != nullptr) {
    RETURN_IF_ERROR(ForEachRow(
        device, "gradient of dot products", shape.examples * shape.a_rows,
        RowGradientOf{a, b, shape.a_rows, shape.b_rows, shape.width,
                      shape.b_rows, 1, y, dy, da}));
  }
  if (db == nullptr) return absl::OkStatus();
  return ForEachRow(device, "gradient of dot products",
                    shape.examples * shape.b_rows,
                    RowGradientOf{b, a, shape.b_rows, shape.a_rows, shape.width,
                                  1, shape.b_rows, y, dy, db});
}

}  // namespace parasol::cuda
