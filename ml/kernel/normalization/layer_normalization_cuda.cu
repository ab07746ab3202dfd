#include <cstdint>

#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/normalization/layer_normalization.h"

namespace parasol::cuda {
namespace {

struct NormalizeRow {
  MatrixView x;
  const float* gamma;
  const float* beta;
  float epsilon;
  RowMoments moments;
  float* y;
  __device__ void operator()(int64_t row, int lane) const {
    const int64_t begin = row * x.columns;
    float sum = 0;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      sum += x.data[begin + i];
    }
    const float mean = WarpSum(sum) / x.columns;
    float squares = 0;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      const float difference = x.data[begin + i] - mean;
      squares += difference * difference;
    }
    const float variance = WarpSum(squares) / x.columns;
    const float inverse_deviation = 1 / sqrtf(variance + epsilon);
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      const float z = (x.data[begin + i] - mean) * inverse_deviation;
      const float scaled = gamma == nullptr ? z : z * gamma[i];
      y[begin + i] = beta == nullptr ? scaled : scaled + beta[i];
    }
    if (lane == 0) {
      moments.mean[row] = mean;
      moments.inverse_deviation[row] = inverse_deviation;
    }
  }
};

// The part of one row in the gradients by gamma and beta.
struct VariableGradientTerm {
  MatrixView x;
  RowMoments moments;
  const float* dy;
  __device__ void operator()(int64_t row, int64_t column,
                             float (&sums)[2]) const {
    const int64_t i = row * x.columns + column;
    sums[0] += dy[i] * (x.data[i] - moments.mean[row]) *
               moments.inverse_deviation[row];
    sums[1] += dy[i];
  }
};

struct StoreVariableGradients {
  float* dgamma;
  float* dbeta;
  __device__ void operator()(int64_t column, const double (&sums)[2]) const {
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(sums[0]);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(sums[1]);
  }
};

struct InputGradient {
  MatrixView x;
  const float* gamma;
  RowMoments moments;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t row, int lane) const {
    const int64_t begin = row * x.columns;
    const float mean = moments.mean[row];
    const float inverse_deviation = moments.inverse_deviation[row];
    float sum = 0;
    float dot = 0;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      const float g =
          gamma == nullptr ? dy[begin + i] : dy[begin + i] * gamma[i];
      sum += g;
      dot += g * (x.data[begin + i] - mean) * inverse_deviation;
    }
    const float mean_g = WarpSum(sum) / x.columns;
    const float mean_gz = WarpSum(dot) / x.columns;
    for (int64_t i = lane; i < x.columns; i += kWarpSize) {
      const float g =
          gamma == nullptr ? dy[begin + i] : dy[begin + i] * gamma[i];
      const float z = (x.data[begin + i] - mean) * inverse_deviation;
      dx[begin + i] = inverse_deviation * (g - mean_g - z * mean_gz);
    }
  }
};

}  // namespace

absl::Status LayerNormalization(Device& device, MatrixView x,
                                const float* gamma, const float* beta,
                                float epsilon, RowMoments moments,
                                MutableMatrixView y) {
  return ForEachRow(device, "layer normalization", x.rows,
                    NormalizeRow{x, gamma, beta, epsilon, moments, y.data});
}

absl::Status LayerNormalizationVariableGradients(Device& device, MatrixView x,
                                                 RowMoments moments,
                                                 MatrixView dy, float* dgamma,
                                                 float* dbeta) {
  return SumRowsOf<2>(device, "variables' gradients of layer normalization",
                      x.rows, x.columns,
                      VariableGradientTerm{x, moments, dy.data},
                      StoreVariableGradients{dgamma, dbeta});
}

absl::Status LayerNormalizationInputGradient(Device& device, MatrixView x,
                                             const float* gamma,
                                             RowMoments moments, MatrixView dy,
                                             MutableMatrixView dx) {
  return ForEachRow(device, "gradient of layer normalization", x.rows,
                    InputGradient{x, gamma, moments, dy.data, dx.data});
}

}  // namespace parasol::cuda
