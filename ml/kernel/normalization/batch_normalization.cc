#include "ml/kernel/normalization/batch_normalization.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<BatchNormalization>> BatchNormalization::Create(
    Device& device, const Shape& shape, const Options& options) {
  CHECK_GT(shape.size(), 0);
  return PARASOL_DISPATCH(device,
                          NewBatchNormalization(device, shape, options));
}

}  // namespace parasol
