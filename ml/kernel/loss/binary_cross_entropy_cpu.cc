#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/loss/binary_cross_entropy.h"
#include "ml/kernel/loss/lane_sum.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

float Weight(const LossBatch& batch, int64_t row) {
  return batch.weights == nullptr ? 1 : batch.weights[row];
}

// One logarithm per logit is left to the library.
void Losses(const LossBatch& batch, float smoothing, float* losses) {
  const int64_t columns = batch.outputs.columns;
  for (int64_t row = 0; row < batch.outputs.rows; ++row) {
    const float* const logits = batch.outputs.data + row * columns;
    const float* const labels = batch.labels + row * columns;
    const float sum = LaneSum(columns, [=](int64_t i) {
      const float z = logits[i];
      const float y = labels[i] * (1 - smoothing) + smoothing / 2;
      return (z < 0 ? 0 : z) - z * y + std::log1p(std::exp(-std::fabs(z)));
    });
    losses[row] = Weight(batch, row) * sum / columns;
  }
}

PARASOL_MULTIVERSION void Gradient(const LossBatch& batch, float smoothing,
                                   float* gradient) {
  const int64_t rows = batch.outputs.rows;
  const int64_t columns = batch.outputs.columns;
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = Weight(batch, row) / columns / rows;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const float z = batch.outputs.data[i];
      const float e = vector_math::Exp(-std::fabs(z));
      const float p = (z < 0 ? e : 1) / (1 + e);
      const float y = batch.labels[i] * (1 - smoothing) + smoothing / 2;
      gradient[i] = scale * (p - y);
    }
  }
}

}  // namespace

absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out) {
  Losses(batch, smoothing, out.losses);
  if (out.gradient != nullptr) Gradient(batch, smoothing, out.gradient);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
