#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/loss/lane_sum.h"
#include "ml/kernel/loss/mean_squared_error.h"

namespace parasol::cpu {
namespace {

PARASOL_MULTIVERSION void Compute(const LossBatch& batch,
                                  const LossResult& out) {
  const int64_t rows = batch.outputs.rows;
  const int64_t columns = batch.outputs.columns;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const z = batch.outputs.data + row * columns;
    const float* const y = batch.labels + row * columns;
    const float weight = batch.weights == nullptr ? 1 : batch.weights[row];
    const float squares = LaneSum(
        columns, [z, y](int64_t i) { return (z[i] - y[i]) * (z[i] - y[i]); });
    out.losses[row] = weight * squares / columns;
    if (out.gradient == nullptr) continue;
    float* const gradient = out.gradient + row * columns;
    const float scale = 2 * weight / columns / rows;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < columns; ++i) gradient[i] = scale * (z[i] - y[i]);
  }
}

}  // namespace

absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out) {
  Compute(batch, out);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
