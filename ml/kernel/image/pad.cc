#include "ml/kernel/image/pad.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Pad(Device& device, const PadShape& shape, ConstElements x,
                 Elements y) {
  CHECK_GT(shape.x_size(), 0);
  return PARASOL_DISPATCH(device, Pad(device, shape, x, y));
}

absl::Status PadGradient(Device& device, const PadShape& shape,
                         ConstElements dy, Elements dx) {
  CHECK_GT(shape.x_size(), 0);
  return PARASOL_DISPATCH(device, PadGradient(device, shape, dy, dx));
}

}  // namespace parasol
