#include "ml/kernel/image/pooling.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<Pooling>> Pooling::Create(
    Device& device, const PoolingShape& shape) {
  CHECK_GT(shape.x_size(), 0);
  CHECK_GT(shape.y_size(), 0);
  return PARASOL_DISPATCH(device, NewPooling(device, shape));
}

}  // namespace parasol
