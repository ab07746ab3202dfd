#include "ml/kernel/loss/categorical_cross_entropy.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out) {
  CHECK_GT(batch.outputs.columns, 0);
  CHECK(out.losses != nullptr);
  return PARASOL_DISPATCH(
      device, CategoricalCrossEntropy(device, batch, smoothing, out));
}

absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out) {
  CHECK_GT(batch.outputs.columns, 0);
  CHECK(out.losses != nullptr);
  return PARASOL_DISPATCH(
      device, SparseCategoricalCrossEntropy(device, batch, smoothing, out));
}

}  // namespace parasol
