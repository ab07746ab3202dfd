#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/normalization/layer_normalization.h"

namespace parasol::cpu {
namespace {

struct Moments {
  float mean;
  float inverse_deviation;
};

__attribute__((always_inline)) inline Moments MomentsOf(const float* x,
                                                        int64_t size,
                                                        float epsilon) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(size);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < size; ++i) {
    squares += (x[i] - mean) * (x[i] - mean);
  }
  const float variance = squares / static_cast<float>(size);
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

PARASOL_MULTIVERSION Moments Normalize(const float* x, const float* gamma,
                                       const float* beta, float epsilon,
                                       int64_t size, float* y) {
  const Moments m = MomentsOf(x, size, epsilon);
  for (int64_t i = 0; i < size; ++i) {
    const float z = (x[i] - m.mean) * m.inverse_deviation;
    const float scaled = gamma == nullptr ? z : z * gamma[i];
    y[i] = beta == nullptr ? scaled : scaled + beta[i];
  }
  return m;
}

PARASOL_MULTIVERSION void AddGammaGradient(const float* x, Moments m,
                                           const float* dy, int64_t size,
                                           float* dgamma) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    dgamma[i] += dy[i] * (x[i] - m.mean) * m.inverse_deviation;
  }
}

PARASOL_MULTIVERSION void AddBetaGradient(const float* dy, int64_t size,
                                          float* dbeta) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) dbeta[i] += dy[i];
}

// dx is g, and then itself.
PARASOL_MULTIVERSION void InputGradient(const float* x, const float* gamma,
                                        Moments m, const float* dy,
                                        int64_t size, float* dx) {
  float sum = 0;
  float dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t i = 0; i < size; ++i) {
    const float g = gamma == nullptr ? dy[i] : dy[i] * gamma[i];
    sum += g;
    dot += g * (x[i] - m.mean) * m.inverse_deviation;
    dx[i] = g;
  }
  const float mean_g = sum / static_cast<float>(size);
  const float mean_gz = dot / static_cast<float>(size);
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float z = (x[i] - m.mean) * m.inverse_deviation;
    dx[i] = m.inverse_deviation * (dx[i] - mean_g - z * mean_gz);
  }
}

Moments Of(RowMoments moments, int64_t row) {
  return {moments.mean[row], moments.inverse_deviation[row]};
}

}  // namespace

absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const int64_t begin = row * x.columns;
    const Moments m = Normalize(x.data + begin, gamma, beta, epsilon, x.columns,
                                y.data + begin);
    moments.mean[row] = m.mean;
    moments.inverse_deviation[row] = m.inverse_deviation;
  }
  return absl::OkStatus();
}

absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta) {
  if (dgamma != nullptr) std::fill_n(dgamma, x.columns, 0.0f);
  if (dbeta != nullptr) std::fill_n(dbeta, x.columns, 0.0f);
  for (int64_t row = 0; row < x.rows; ++row) {
    const int64_t begin = row * x.columns;
    if (dgamma != nullptr) {
      AddGammaGradient(x.data + begin, Of(moments, row), dy.data + begin,
                       x.columns, dgamma);
    }
    if (dbeta != nullptr) AddBetaGradient(dy.data + begin, x.columns, dbeta);
  }
  return absl::OkStatus();
}

absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const int64_t begin = row * x.columns;
    InputGradient(x.data + begin, gamma, Of(moments, row), dy.data + begin,
                  x.columns, dx.data + begin);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
