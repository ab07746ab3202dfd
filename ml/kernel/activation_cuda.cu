#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/activation.h"

namespace parasol::cuda {
namespace {

constexpr float kInverseSqrt2 = 0.70710678f;
constexpr float kInverseSqrt2Pi = 0.39894228f;

struct SigmoidOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = 1 / (1 + expf(-x[i])); }
};

struct SigmoidGradient {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = dy[i] * y[i] * (1 - y[i]);
  }
};

struct TanhOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = tanhf(x[i]); }
};

struct TanhGradient {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = dy[i] * (1 - y[i] * y[i]);
  }
};

struct GeluOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = x[i] * normcdff(x[i]); }
};

struct GeluGradient {
  const float* x;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const float z = x[i] * kInverseSqrt2;
    dx[i] = dy[i] * (normcdff(x[i]) + x[i] * kInverseSqrt2Pi * expf(-z * z));
  }
};

struct LeakyReluOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = x[i] < 0 ? kLeakyReluSlope * x[i] : x[i];
  }
};

struct LeakyReluGradient {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = y[i] > 0 ? dy[i] : kLeakyReluSlope * dy[i];
  }
};

struct SiluOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = x[i] / (1 + expf(-x[i]));
  }
};

struct SiluGradient {
  const float* x;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const float s = 1 / (1 + expf(-x[i]));
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
};

struct SoftplusOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = (x[i] < 0 ? 0 : x[i]) + log1pf(expf(-fabsf(x[i])));
  }
};

struct SoftplusGradient {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = dy[i] * -expm1f(-y[i]);
  }
};

struct EluOf {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = x[i] < 0 ? expm1f(x[i]) : x[i];
  }
};

struct EluGradient {
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = y[i] > 0 ? dy[i] : dy[i] * (y[i] + 1);
  }
};

struct SoftmaxOf {
  MatrixView x;
  float* y;
  __device__ void operator()(int64_t row, int lane) const {
    const int64_t begin = row * x.columns;
    float largest = -INFINITY;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      largest = fmaxf(largest, x.data[begin + i]);
    }
    largest = WarpMax(largest);
    float sum = 0;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      const float e = expf(x.data[begin + i] - largest);
      y[begin + i] = e;
      sum += e;
    }
    sum = WarpSum(sum);
    for (int64_t i = lane; i < x.columns; i += kWarpSize) y[begin + i] /= sum;
  }
};

struct SoftmaxGradient {
  MatrixView y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t row, int lane) const {
    const int64_t begin = row * y.columns;
    float dot = 0;
    for (int64_t i = lane; i < y.columns; i += kWarpSize) {
      dot += y.data[begin + i] * dy[begin + i];
    }
    dot = WarpSum(dot);
    for (int64_t i = lane; i < y.columns; i += kWarpSize) {
      dx[begin + i] = y.data[begin + i] * (dy[begin + i] - dot);
    }
  }
};

}  // namespace

absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y) {
  const int64_t size = x.size();
  switch (function) {
    case ActivationFunction::kLinear:
    case ActivationFunction::kRelu:
      break;
    case ActivationFunction::kSigmoid:
      return ForEach(device, "sigmoid", size, SigmoidOf{x.data, y.data});
    case ActivationFunction::kTanh:
      return ForEach(device, "tanh", size, TanhOf{x.data, y.data});
    case ActivationFunction::kGelu:
      return ForEach(device, "gelu", size, GeluOf{x.data, y.data});
    case ActivationFunction::kSoftmax:
      return ForEachRow(device, "softmax", x.rows, SoftmaxOf{x, y.data});
    case ActivationFunction::kLeakyRelu:
      return ForEach(device, "leaky relu", size, LeakyReluOf{x.data, y.data});
    case ActivationFunction::kSilu:
      return ForEach(device, "silu", size, SiluOf{x.data, y.data});
    case ActivationFunction::kSoftplus:
      return ForEach(device, "softplus", size, SoftplusOf{x.data, y.data});
    case ActivationFunction::kElu:
      return ForEach(device, "elu", size, EluOf{x.data, y.data});
  }
  return absl::OkStatus();
}

absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx) {
  const int64_t size = at.size();
  switch (function) {
    case ActivationFunction::kLinear:
    case ActivationFunction::kRelu:
      break;
    case ActivationFunction::kSigmoid:
      return ForEach(device, "gradient of sigmoid", size,
                     SigmoidGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kTanh:
      return ForEach(device, "gradient of tanh", size,
                     TanhGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kGelu:
      return ForEach(device, "gradient of gelu", size,
                     GeluGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kSoftmax:
      return ForEachRow(device, "gradient of softmax", at.rows,
                        SoftmaxGradient{at, dy.data, dx.data});
    case ActivationFunction::kLeakyRelu:
      return ForEach(device, "gradient of leaky relu", size,
                     LeakyReluGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kSilu:
      return ForEach(device, "gradient of silu", size,
                     SiluGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kSoftplus:
      return ForEach(device, "gradient of softplus", size,
                     SoftplusGradient{at.data, dy.data, dx.data});
    case ActivationFunction::kElu:
      return ForEach(device, "gradient of elu", size,
                     EluGradient{at.data, dy.data, dx.data});
  }
  return absl::OkStatus();
}

}  // namespace parasol::cuda
