#include "ml/kernel/loss/binary_cross_entropy.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out) {
  CHECK_GT(batch.outputs.columns, 0);
  CHECK(out.losses != nullptr);
  return PARASOL_DISPATCH(device,
                          BinaryCrossEntropy(device, batch, smoothing, out));
}

}  // namespace parasol
