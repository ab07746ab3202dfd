#include "ml/kernel/relu.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y) {
  CHECK_EQ(x.size(), y.size());
  return PARASOL_DISPATCH(device, Relu(device, x, y));
}

absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx) {
  CHECK_EQ(y.size(), dy.size());
  CHECK_EQ(y.size(), dx.size());
  return PARASOL_DISPATCH(device, ReluGradient(device, y, dy, dx));
}

}  // namespace parasol
