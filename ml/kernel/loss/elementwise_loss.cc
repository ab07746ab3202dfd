#include "ml/kernel/loss/elementwise_loss.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out) {
  CHECK_GT(batch.outputs.columns, 0);
  CHECK(out.losses != nullptr);
  return PARASOL_DISPATCH(device, ElementwiseLoss(device, batch, term, out));
}

}  // namespace parasol
