#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/relu.h"

namespace parasol::cuda {
namespace {

struct ReluOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = x[i] < 0 ? 0 : x[i]; }
};

struct GradientOf {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const float gradient = dy[i];  // read in any case, beside y
    dx[i] = y[i] > 0 ? gradient : 0;
  }
};

}  // namespace

absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y) {
  return ForEach(device, "relu", x.size(), ReluOf{x.data, y.data});
}

absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx) {
  return ForEach(device, "gradient of relu", y.size(),
                 GradientOf{y.data, dy.data, dx.data});
}

}  // namespace parasol::cuda
