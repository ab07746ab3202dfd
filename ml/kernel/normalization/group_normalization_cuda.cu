#include <cstdint>

#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/normalization/group_normalization.h"

namespace parasol::cuda {
namespace {

// Where the numbers of a row, an example's group, are.
struct Group {
  int64_t first;
  int64_t width;
  int64_t stride;
  int64_t channel;
  int64_t size;
  __device__ Group(const GroupedChannels& s, int64_t row)
      : width(s.width),
        stride(s.groups * s.width),
        channel(row % s.groups * s.width),
        size(s.pixels * s.width) {
    first = row / s.groups * s.pixels * stride + channel;
  }
  __device__ int64_t Place(int64_t i) const {
    return first + i / width * stride + i % width;
  }
  __device__ int64_t Channel(int64_t i) const { return channel + i % width; }
};

struct NormalizeGroup {
  GroupedChannels s;
  GroupForm form;
  const float* x;
  const float* gamma;
  const float* beta;
  RowMoments moments;
  float* y;
  __device__ void operator()(int64_t row, int lane) const {
    const Group group(s, row);
    float mean = 0;
    if (form.centered) {
      float sum = 0;
      for (int64_t i = lane; i < group.size; i += kWarpSize) {
        sum += x[group.Place(i)];
      }
      mean = WarpSum(sum) / group.size;
    }
    float squares = 0;
    for (int64_t i = lane; i < group.size; i += kWarpSize) {
      const float difference = x[group.Place(i)] - mean;
      squares += difference * difference;
    }
    const float variance = WarpSum(squares) / group.size;
    const float inverse_deviation = 1 / sqrtf(variance + form.epsilon);
    for (int64_t i = lane; i < group.size; i += kWarpSize) {
      const int64_t place = group.Place(i);
      float z = (x[place] - mean) * inverse_deviation;
      if (gamma != nullptr) z *= gamma[group.Channel(i)];
      y[place] = beta == nullptr ? z : z + beta[group.Channel(i)];
    }
    if (lane == 0) {
      moments.mean[row] = mean;
      moments.inverse_deviation[row] = inverse_deviation;
    }
  }
};

// The part of one pixel in the gradients by gamma and beta.
struct GroupVariableTerm {
  GroupedChannels s;
  const float* x;
  RowMoments moments;
  const float* dy;
  __device__ void operator()(int64_t row, int64_t column,
                             float (&sums)[2]) const {
    const int64_t i = row * s.groups * s.width + column;
    const int64_t group = row / s.pixels * s.groups + column / s.width;
    sums[0] +=
        dy[i] * (x[i] - moments.mean[group]) * moments.inverse_deviation[group];
    sums[1] += dy[i];
  }
};

struct StoreGroupGradients {
  float* dgamma;
  float* dbeta;
  __device__ void operator()(int64_t column, const double (&sums)[2]) const {
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(sums[0]);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(sums[1]);
  }
};

struct GroupInputGradient {
  GroupedChannels s;
  bool centered;
  const float* x;
  const float* gamma;
  RowMoments moments;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t row, int lane) const {
    const Group group(s, row);
    const float mean = moments.mean[row];
    const float inverse_deviation = moments.inverse_deviation[row];
    float sum = 0;
    float dot = 0;
    for (int64_t i = lane; i < group.size; i += kWarpSize) {
      const float g = Gradient(group, i);
      sum += g;
      dot += g * (x[group.Place(i)] - mean) * inverse_deviation;
    }
    const float mean_g = centered ? WarpSum(sum) / group.size : 0;
    const float mean_gz = WarpSum(dot) / group.size;
    for (int64_t i = lane; i < group.size; i += kWarpSize) {
      const int64_t place = group.Place(i);
      const float z = (x[place] - mean) * inverse_deviation;
      dx[place] =
          inverse_deviation * (Gradient(group, i) - mean_g - z * mean_gz);
    }
  }
  __device__ float Gradient(const Group& group, int64_t i) const {
    const float g = dy[group.Place(i)];
    return gamma == nullptr ? g : g * gamma[group.Channel(i)];
  }
};

}  // namespace

absl::Status NormalizeGroups(Device& device, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y) {
  return ForEachRow(device, "group normalization", shape.rows(),
                    NormalizeGroup{shape, form, x, gamma, beta, moments, y});
}

absl::Status NormalizeGroupsVariableGradients(
    Device& device, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta) {
  return SumRowsOf<2>(device, "variables' gradients of group normalization",
                      shape.examples * shape.pixels, shape.channels(),
                      GroupVariableTerm{shape, x, moments, dy},
                      StoreGroupGradients{dgamma, dbeta});
}

absl::Status NormalizeGroupsInputGradient(Device& device,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx) {
  return ForEachRow(
      device, "gradient of group normalization", shape.rows(),
      GroupInputGradient{shape, form.centered, x, gamma, moments, dy, dx});
}

}  // namespace parasol::cuda
