#include <cmath>
#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/sequence/attention_weights.h"

namespace parasol::cuda {
namespace {

struct WeightsOfRow {
  AttentionShape shape;
  const float* mask;
  float* scores;
  __device__ void operator()(int64_t row, int lane) const {
    float* const begin = scores + row * shape.keys;
    const int64_t visible = shape.Visible(row);
    const float* const seen = shape.MaskOf(mask, row);
    float largest = -INFINITY;
    float count = 0;
    for (int64_t i = lane; i < visible; i += kWarpSize) {
      if (seen != nullptr && !(seen[i] > .5f)) continue;
      largest = fmaxf(largest, begin[i]);
      count += 1;
    }
    largest = WarpMax(largest);
    count = WarpSum(count);
    float sum = 0;
    for (int64_t i = lane; i < shape.keys; i += kWarpSize) {
      const bool sees = i < visible && (seen == nullptr || seen[i] > .5f);
      begin[i] = sees ? expf((begin[i] - largest) * shape.scale) : 0;
      sum += begin[i];
    }
    sum = WarpSum(sum);
    if (count == 0) return;
    for (int64_t i = lane; i < visible; i += kWarpSize) begin[i] /= sum;
  }
};

struct GradientOfRow {
  AttentionShape shape;
  const float* weights;
  float* gradients;
  __device__ void operator()(int64_t row, int lane) const {
    const float* const from = weights + row * shape.keys;
    float* const to = gradients + row * shape.keys;
    float dot = 0;
    for (int64_t i = lane; i < shape.keys; i += kWarpSize) {
      dot += from[i] * to[i];
    }
    dot = WarpSum(dot);
    for (int64_t i = lane; i < shape.keys; i += kWarpSize) {
      to[i] = shape.scale * from[i] * (to[i] - dot);
    }
  }
};

}  // namespace

absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores) {
  return ForEachRow(device, "weights of attention", shape.rows(),
                    WeightsOfRow{shape, mask, scores});
}

absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients) {
  return ForEachRow(device, "gradient of attention's weights", shape.rows(),
                    GradientOfRow{shape, weights, gradients});
}

}  // namespace parasol::cuda
