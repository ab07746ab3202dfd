#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/pairwise_logistic_loss.h"

namespace parasol::cuda {
namespace {

// Scores and shares w / (rows · |L|) of the examples, by their places.
struct Ranked {
  float* scores;
  float* shares;
};

struct GatherOf {
  LossBatch batch;
  const PairRanges* pairs;
  Ranked ranked;
  __device__ void operator()(int64_t i) const {
    const PairRanges own = pairs[i];
    const float weight =
        batch.weights == nullptr ? 1.0f : batch.weights[own.example];
    const int32_t lower = own.lower_end - own.begin;
    ranked.scores[i] = batch.outputs.data[own.example];
    ranked.shares[i] =
        lower == 0 ? 0.0f
                   : weight / (static_cast<float>(batch.outputs.rows) * lower);
  }
};

__device__ float Sigmoid(float z) {
  const float e = expf(-fabsf(z));
  return (z < 0 ? e : 1.0f) / (1 + e);
}

// The loss of the example at one place, and its gradient.
struct PairsOf {
  int64_t rows;
  const PairRanges* pairs;
  Ranked ranked;
  LossResult out;
  __device__ void operator()(int64_t i, int lane) const {
    const PairRanges own = pairs[i];
    const float score = ranked.scores[i];
    float loss = 0;
    float below = 0;
    for (int32_t j = own.begin + lane; j < own.lower_end; j += kWarpSize) {
      const float z = ranked.scores[j] - score;
      // Written so that NaN stays NaN.
      loss += (z < 0 ? 0.0f : z) + log1pf(expf(-fabsf(z)));
      below += Sigmoid(z);
    }
    float above = 0;
    for (int32_t j = own.higher_begin + lane; j < own.end; j += kWarpSize) {
      above += ranked.shares[j] * Sigmoid(score - ranked.scores[j]);
    }
    loss = WarpSum(loss);
    below = WarpSum(below);
    above = WarpSum(above);
    if (lane != 0) return;
    const float share = ranked.shares[i];
    out.losses[own.example] = own.lower_end == own.begin
                                  ? 0.0f
                                  : share * static_cast<float>(rows) * loss;
    if (out.gradient == nullptr) return;
    out.gradient[own.example] = above - share * below;
  }
};

}  // namespace

absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out) {
  const int64_t rows = batch.outputs.rows;
  const auto* const pairs = reinterpret_cast<const PairRanges*>(batch.integers);
  const Ranked ranked = {batch.scratch, batch.scratch + rows};
  RETURN_IF_ERROR(
      ForEach(device, "scores of pairs", rows, GatherOf{batch, pairs, ranked}));
  return ForEachRow(device, "pairwise logistic loss", rows,
                    PairsOf{rows, pairs, ranked, out});
}

}  // namespace parasol::cuda
