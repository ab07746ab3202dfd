#include "ml/kernel/loss/pairwise_logistic_loss.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out) {
  return PARASOL_DISPATCH(device, PairwiseLogisticLoss(device, batch, out));
}

}  // namespace parasol
