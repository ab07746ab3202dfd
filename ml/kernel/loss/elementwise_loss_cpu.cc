#include <cstdint>
#include <variant>

#include "base/multiversion.h"
#include "ml/kernel/loss/elementwise_loss.h"
#include "ml/kernel/loss/lane_sum.h"

namespace parasol::cpu {
namespace {

template <typename Term>
void Compute(const LossBatch& batch, const Term& term, const LossResult& out) {
  const int64_t rows = batch.outputs.rows;
  const int64_t columns = batch.outputs.columns;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const z = batch.outputs.data + row * columns;
    const float* const y = batch.labels + row * columns;
    const float weight = batch.weights == nullptr ? 1 : batch.weights[row];
    const float sum = LaneSum(
        columns, [z, y, &term](int64_t i) { return term.Loss(z[i], y[i]); });
    out.losses[row] = weight * sum / columns;
    if (out.gradient == nullptr) continue;
    float* const gradient = out.gradient + row * columns;
    const float scale = weight / columns / rows;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < columns; ++i) {
      gradient[i] = scale * term.Slope(z[i], y[i]);
    }
  }
}

}  // namespace

absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out) {
  std::visit([&](const auto& chosen) { Compute(batch, chosen, out); }, term);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
