#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/activation.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

constexpr float kInverseSqrt2Pi = 0.39894228f;

PARASOL_MULTIVERSION void Sigmoid(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = vector_math::Sigmoid(x[i]);
}

PARASOL_MULTIVERSION void SigmoidGradient(const float* y, const float* dy,
                                          int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

PARASOL_MULTIVERSION void Tanh(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = vector_math::Tanh(x[i]);
}

PARASOL_MULTIVERSION void TanhGradient(const float* y, const float* dy,
                                       int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

PARASOL_MULTIVERSION void Gelu(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = x[i] * vector_math::NormalCdf(x[i]);
}

// (x · Φ(x))' = Φ(x) + x · φ(x).
PARASOL_MULTIVERSION void GeluGradient(const float* x, const float* dy,
                                       int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float slope = vector_math::NormalCdf(x[i]) +
                        x[i] * kInverseSqrt2Pi * vector_math::Bell(x[i]);
    dx[i] = dy[i] * slope;
  }
}

PARASOL_MULTIVERSION void LeakyRelu(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    y[i] = x[i] < 0 ? kLeakyReluSlope * x[i] : x[i];
  }
}

// The output has the sign of the input.
PARASOL_MULTIVERSION void LeakyReluGradient(const float* y, const float* dy,
                                            int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    dx[i] = y[i] > 0 ? dy[i] : kLeakyReluSlope * dy[i];
  }
}

PARASOL_MULTIVERSION void Silu(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = x[i] * vector_math::Sigmoid(x[i]);
}

// (x · σ(x))' = σ(x) · (1 + x · (1 - σ(x))).
PARASOL_MULTIVERSION void SiluGradient(const float* x, const float* dy,
                                       int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float s = vector_math::Sigmoid(x[i]);
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
}

// max(x, 0) + log(1 + e^-|x|), which no finite x overflows. The logarithm is
// left to the library.
void Softplus(const float* x, int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i) {
    y[i] = (x[i] < 0 ? 0 : x[i]) + std::log1p(std::exp(-std::fabs(x[i])));
  }
}

// The gradient by x is σ(x) = 1 - e^-y.
void SoftplusGradient(const float* y, const float* dy, int64_t size,
                      float* dx) {
  for (int64_t i = 0; i < size; ++i) dx[i] = dy[i] * -std::expm1(-y[i]);
}

void Elu(const float* x, int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i) {
    y[i] = x[i] < 0 ? std::expm1(x[i]) : x[i];
  }
}

PARASOL_MULTIVERSION void EluGradient(const float* y, const float* dy,
                                      int64_t size, float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    dx[i] = y[i] > 0 ? dy[i] : dy[i] * (y[i] + 1);
  }
}

// Computes the softmax of a row less its maximum, so that no finite number
// overflows.
PARASOL_MULTIVERSION void SoftmaxOfRow(const float* x, int64_t size, float* y) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) {
    largest = largest > x[i] ? largest : x[i];
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    const float e = vector_math::Exp(x[i] - largest);
    y[i] = e;
    sum += e;
  }
  const float scale = 1 / sum;
  for (int64_t i = 0; i < size; ++i) y[i] *= scale;
}

// dx = y · (dy - Σ y · dy).
PARASOL_MULTIVERSION void SoftmaxGradientOfRow(const float* y, const float* dy,
                                               int64_t size, float* dx) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < size; ++i) dot += y[i] * dy[i];
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) dx[i] = y[i] * (dy[i] - dot);
}

void Softmax(MatrixView x, MutableMatrixView y) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const int64_t begin = row * x.columns;
    SoftmaxOfRow(x.data + begin, x.columns, y.data + begin);
  }
}

void SoftmaxGradient(MatrixView y, MatrixView dy, MutableMatrixView dx) {
  for (int64_t row = 0; row < y.rows; ++row) {
    const int64_t begin = row * y.columns;
    SoftmaxGradientOfRow(y.data + begin, dy.data + begin, y.columns,
                         dx.data + begin);
  }
}

}  // namespace

absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y) {
  switch (function) {
    case ActivationFunction::kLinear:
    case ActivationFunction::kRelu:
      break;
    case ActivationFunction::kSigmoid:
      Sigmoid(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kTanh:
      Tanh(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kGelu:
      Gelu(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kSoftmax:
      Softmax(x, y);
      break;
    case ActivationFunction::kLeakyRelu:
      LeakyRelu(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kSilu:
      Silu(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kSoftplus:
      Softplus(x.data, x.size(), y.data);
      break;
    case ActivationFunction::kElu:
      Elu(x.data, x.size(), y.data);
      break;
  }
  return absl::OkStatus();
}

absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx) {
  switch (function) {
    case ActivationFunction::kLinear:
    case ActivationFunction::kRelu:
      break;
    case ActivationFunction::kSigmoid:
      SigmoidGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kTanh:
      TanhGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kGelu:
      GeluGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kSoftmax:
      SoftmaxGradient(at, dy, dx);
      break;
    case ActivationFunction::kLeakyRelu:
      LeakyReluGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kSilu:
      SiluGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kSoftplus:
      SoftplusGradient(at.data, dy.data, at.size(), dx.data);
      break;
    case ActivationFunction::kElu:
      EluGradient(at.data, dy.data, at.size(), dx.data);
      break;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
