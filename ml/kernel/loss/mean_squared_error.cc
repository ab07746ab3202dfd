#include "ml/kernel/loss/mean_squared_error.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out) {
  CHECK_GT(batch.outputs.columns, 0);
  CHECK(out.losses != nullptr);
  return PARASOL_DISPATCH(device, MeanSquaredError(device, batch, out));
}

}  // namespace parasol
