#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/activation.h"

namespace parasol::cuda {
namespace {

constexpr float kInverseSqrt2 = 0.70710678f;
constexpr float kInverseSqrt2Pi = 0.39894228f;

// Functions of one element. Value() is the function, Gradient() the gradient by
// x from that by y; `at` is y, or x where IsGradientOfOutput() is false.

struct Sigmoid {
  __device__ static float Value(float x) { return 1 / (1 + expf(-x)); }
  __device__ static float Gradient(float y, float dy) {
    return dy * y * (1 - y);
  }
};

struct Tanh {
  __device__ static float Value(float x) { return tanhf(x); }
  __device__ static float Gradient(float y, float dy) {
    return dy * (1 - y * y);
  }
};

struct Gelu {
  __device__ static float Value(float x) { return x * normcdff(x); }
  __device__ static float Gradient(float x, float dy) {
    const float z = x * kInverseSqrt2;
    return dy * (normcdff(x) + x * kInverseSqrt2Pi * expf(-z * z));
  }
};

struct LeakyRelu {
  __device__ static float Value(float x) {
    return x < 0 ? kLeakyReluSlope * x : x;
  }
  __device__ static float Gradient(float y, float dy) {
    return y > 0 ? dy : kLeakyReluSlope * dy;
  }
};

struct Silu {
  __device__ static float Value(float x) { return x / (1 + expf(-x)); }
  __device__ static float Gradient(float x, float dy) {
    const float s = 1 / (1 + expf(-x));
    return dy * s * (1 + x * (1 - s));
  }
};

struct Softplus {
  __device__ static float Value(float x) {
    return (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x)));
  }
  __device__ static float Gradient(float y, float dy) {
    return dy * -expm1f(-y);
  }
};

struct Elu {
  __device__ static float Value(float x) { return x < 0 ? expm1f(x) : x; }
  __device__ static float Gradient(float y, float dy) {
    return y > 0 ? dy : dy * (y + 1);
  }
};

template <typename Function>
struct EachValue {
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = Function::Value(x[i]); }
};

template <typename Function>
struct EachGradient {
  const float* at;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = Function::Gradient(at[i], dy[i]);
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
      return ForEach(device, "sigmoid", size,
                     EachValue<Sigmoid>{x.data, y.data});
    case ActivationFunction::kTanh:
      return ForEach(device, "tanh", size, EachValue<Tanh>{x.data, y.data});
    case ActivationFunction::kGelu:
      return ForEach(device, "gelu", size, EachValue<Gelu>{x.data, y.data});
    case ActivationFunction::kSoftmax:
      return ForEachRow(device, "softmax", x.rows, SoftmaxOf{x, y.data});
    case ActivationFunction::kLeakyRelu:
      return ForEach(device, "leaky relu", size,
                     EachValue<LeakyRelu>{x.data, y.data});
    case ActivationFunction::kSilu:
      return ForEach(device, "silu", size, EachValue<Silu>{x.data, y.data});
    case ActivationFunction::kSoftplus:
      return ForEach(device, "softplus", size,
                     EachValue<Softplus>{x.data, y.data});
    case ActivationFunction::kElu:
      return ForEach(device, "elu", size, EachValue<Elu>{x.data, y.data});
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
                     EachGradient<Sigmoid>{at.data, dy.data, dx.data});
    case ActivationFunction::kTanh:
      return ForEach(device, "gradient of tanh", size,
                     EachGradient<Tanh>{at.data, dy.data, dx.data});
    case ActivationFunction::kGelu:
      return ForEach(device, "gradient of gelu", size,
                     EachGradient<Gelu>{at.data, dy.data, dx.data});
    case ActivationFunction::kSoftmax:
      return ForEachRow(device, "gradient of softmax", at.rows,
                        SoftmaxGradient{at, dy.data, dx.data});
    case ActivationFunction::kLeakyRelu:
      return ForEach(device, "gradient of leaky relu", size,
                     EachGradient<LeakyRelu>{at.data, dy.data, dx.data});
    case ActivationFunction::kSilu:
      return ForEach(device, "gradient of silu", size,
                     EachGradient<Silu>{at.data, dy.data, dx.data});
    case ActivationFunction::kSoftplus:
      return ForEach(device, "gradient of softplus", size,
                     EachGradient<Softplus>{at.data, dy.data, dx.data});
    case ActivationFunction::kElu:
      return ForEach(device, "gradient of elu", size,
                     EachGradient<Elu>{at.data, dy.data, dx.data});
  }
  return absl::OkStatus();
}

}  // namespace parasol::cuda
