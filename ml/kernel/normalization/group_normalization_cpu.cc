#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/normalization/group_normalization.h"

namespace parasol::cpu {
namespace {

// One example's group: `pixels` runs of `width` numbers, `stride` apart.
struct Runs {
  int64_t pixels;
  int64_t width;
  int64_t stride;
  int64_t size() const { return pixels * width; }
};

struct Moments {
  float mean;
  float inverse_deviation;
};

PARASOL_MULTIVERSION Moments Normalize(const Runs& runs, GroupForm form,
                                       const float* x, const float* gamma,
                                       const float* beta, float* y) {
  const float size = static_cast<float>(runs.size());
  float mean = 0;
  for (int64_t p = 0; form.centered && p < runs.pixels; ++p) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < runs.width; ++i) sum += x[p * runs.stride + i];
    mean += sum;
  }
  mean /= size;
  float squares = 0;
  for (int64_t p = 0; p < runs.pixels; ++p) {
    const float* const run = x + p * runs.stride;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < runs.width; ++i) {
      sum += (run[i] - mean) * (run[i] - mean);
    }
    squares += sum;
  }
  const Moments m = {mean, 1 / std::sqrt(squares / size + form.epsilon)};
  for (int64_t p = 0; p < runs.pixels; ++p) {
    const float* const run = x + p * runs.stride;
    float* const out = y + p * runs.stride;
    for (int64_t i = 0; i < runs.width; ++i) {
      const float z = (run[i] - m.mean) * m.inverse_deviation;
      const float scaled = gamma == nullptr ? z : z * gamma[i];
      out[i] = beta == nullptr ? scaled : scaled + beta[i];
    }
  }
  return m;
}

PARASOL_MULTIVERSION void AddVariableGradients(const Runs& runs, Moments m,
                                               const float* x, const float* dy,
                                               float* dgamma, float* dbeta) {
  for (int64_t p = 0; p < runs.pixels; ++p) {
    const float* const run = x + p * runs.stride;
    const float* const from = dy + p * runs.stride;
    if (dgamma != nullptr) {
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < runs.width; ++i) {
        dgamma[i] += from[i] * (run[i] - m.mean) * m.inverse_deviation;
      }
    }
    if (dbeta != nullptr) {
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < runs.width; ++i) dbeta[i] += from[i];
    }
  }
}

// dx is g, and then itself.
PARASOL_MULTIVERSION void InputGradient(const Runs& runs, bool centered,
                                        Moments m, const float* x,
                                        const float* gamma, const float* dy,
                                        float* dx) {
  float sum = 0;
  float dot = 0;
  for (int64_t p = 0; p < runs.pixels; ++p) {
    const int64_t begin = p * runs.stride;
#pragma omp simd reduction(+ : sum, dot)
    for (int64_t i = 0; i < runs.width; ++i) {
      const float g =
          gamma == nullptr ? dy[begin + i] : dy[begin + i] * gamma[i];
      sum += g;
      dot += g * (x[begin + i] - m.mean) * m.inverse_deviation;
      dx[begin + i] = g;
    }
  }
  const float size = static_cast<float>(runs.size());
  const float mean_g = centered ? sum / size : 0;
  const float mean_gz = dot / size;
  for (int64_t p = 0; p < runs.pixels; ++p) {
    const float* const run = x + p * runs.stride;
    float* const out = dx + p * runs.stride;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < runs.width; ++i) {
      const float z = (run[i] - m.mean) * m.inverse_deviation;
      out[i] = m.inverse_deviation * (out[i] - mean_g - z * mean_gz);
    }
  }
}

Runs RunsOf(const GroupedChannels& s) {
  return {.pixels = s.pixels, .width = s.width, .stride = s.channels()};
}

// Where the group's channels and its first number are.
struct Group {
  Group(const GroupedChannels& s, int64_t row)
      : channel(row % s.groups * s.width),
        begin(row / s.groups * s.pixels * s.channels() + channel) {}
  int64_t channel;
  int64_t begin;
};

template <typename T>
T* At(T* array, int64_t place) {
  return array == nullptr ? nullptr : array + place;
}

Moments Of(RowMoments moments, int64_t row) {
  return {moments.mean[row], moments.inverse_deviation[row]};
}

}  // namespace

absl::Status NormalizeGroups(Device& /*device*/, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y) {
  for (int64_t row = 0; row < shape.rows(); ++row) {
    const Group group(shape, row);
    const Moments m = Normalize(RunsOf(shape), form, x + group.begin,
                                At(gamma, group.channel),
                                At(beta, group.channel), y + group.begin);
    moments.mean[row] = m.mean;
    moments.inverse_deviation[row] = m.inverse_deviation;
  }
  return absl::OkStatus();
}

absl::Status NormalizeGroupsVariableGradients(
    Device& /*device*/, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta) {
  if (dgamma != nullptr) std::fill_n(dgamma, shape.channels(), 0.0f);
  if (dbeta != nullptr) std::fill_n(dbeta, shape.channels(), 0.0f);
  for (int64_t row = 0; row < shape.rows(); ++row) {
    const Group group(shape, row);
    AddVariableGradients(RunsOf(shape), Of(moments, row), x + group.begin,
                         dy + group.begin, At(dgamma, group.channel),
                         At(dbeta, group.channel));
  }
  return absl::OkStatus();
}

absl::Status NormalizeGroupsInputGradient(Device& /*device*/,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx) {
  for (int64_t row = 0; row < shape.rows(); ++row) {
    const Group group(shape, row);
    InputGradient(RunsOf(shape), form.centered, Of(moments, row),
                  x + group.begin, At(gamma, group.channel), dy + group.begin,
                  dx + group.begin);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
