#include "ml/kernel/relu.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Relu(Device& device, ConstElements x, int64_t size, Elements y) {
  return PARASOL_DISPATCH(device, Relu(device, x, size, y));
}

absl::Status ReluGradient(Device& device, ConstElements y, ConstElements dy,
                          int64_t size, Elements dx) {
  return PARASOL_DISPATCH(device, ReluGradient(device, y, dy, size, dx));
}

}  // namespace parasol
