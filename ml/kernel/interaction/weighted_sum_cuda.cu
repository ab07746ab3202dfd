#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/interaction/weighted_sum.h"

namespace parasol::cuda {
namespace {

// One element y[k] of an example.
struct SumOf {
  WeightedRows shape;
  const float* w;
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    const int64_t example = i / shape.width;
    const float* const weights = w + example * shape.count;
    const float* const column =
        x + example * shape.count * shape.width + i % shape.width;
    float sum = 0;
    for (int64_t n = 0; n < shape.count; ++n) {
      sum += weights[n] * column[n * shape.width];
    }
    y[i] = sum;
  }
};

// The gradient of one weight, i = (example, n).
struct WeightGradientOf {
  WeightedRows shape;
  const float* x;
  const float* dy;
  float* dw;
  __device__ void operator()(int64_t i, int lane) const {
    const float* const row = x + i * shape.width;
    const float* const of_example = dy + i / shape.count * shape.width;
    float sum = 0;
    for (int64_t k = lane; k < shape.width; k += kWarpSize) {
      sum += of_example[k] * row[k];
    }
    sum = WarpSum(sum);
    if (lane == 0) dw[i] = sum;
  }
};

// The gradient of one element x[n, k], i = (example, n, k).
struct WeightedRowGradientOf {
  WeightedRows shape;
  const float* w;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / shape.width;
    dx[i] = w[row] * dy[row / shape.count * shape.width + i % shape.width];
  }
};

}  // namespace

absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y) {
  return ForEach(device, "weighted sum", shape.examples * shape.width,
                 SumOf{shape, w, x, y});
}

absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx) {
  const int64_t rows = shape.examples * shape.count;
  if (dw != nullptr) {
    RETURN_IF_ERROR(ForEachRow(device, "gradient of weights", rows,
                               WeightGradientOf{shape, x, dy, dw}));
  }
  if (dx == nullptr) return absl::OkStatus();
  return ForEach(device, "gradient of weighted rows", rows * shape.width,
                 WeightedRowGradientOf{shape, w, dy, dx});
}

}  // namespace parasol::cuda
