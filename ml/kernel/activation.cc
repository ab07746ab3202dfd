#include "ml/kernel/activation.h"

#include "absl/types/span.h"
#include "base/log.h"
#include "ml/device/dispatch.h"
#include "ml/kernel/relu.h"

namespace parasol {
namespace {

absl::Status Copy(Device& device, MatrixView from, MutableMatrixView to) {
  if (from.data == to.data) return absl::OkStatus();
  return device.Copy(Device::Stream::kCompute,
                     absl::MakeConstSpan(from.data, from.size()), to.data);
}

}  // namespace

absl::Status Activate(Device& device, ActivationFunction function, MatrixView x,
                      MutableMatrixView y) {
  CHECK_EQ(x.rows, y.rows);
  CHECK_EQ(x.columns, y.columns);
  switch (function) {
    case ActivationFunction::kLinear:
      return Copy(device, x, y);
    case ActivationFunction::kRelu:
      return Relu(device, x.data, x.size(), y.data);
    default:
      return PARASOL_DISPATCH(device, Activate(device, function, x, y));
  }
}

absl::Status ActivationGradient(Device& device, ActivationFunction function,
                                MatrixView at, MatrixView dy,
                                MutableMatrixView dx) {
  CHECK_EQ(dy.rows, dx.rows);
  CHECK_EQ(dy.columns, dx.columns);
  switch (function) {
    case ActivationFunction::kLinear:
      return Copy(device, dy, dx);
    case ActivationFunction::kRelu:
      return ReluGradient(device, at.data, dy.data, dy.size(), dx.data);
    default:
      return PARASOL_DISPATCH(device,
                              ActivationGradient(device, function, at, dy, dx));
  }
}

}  // namespace parasol
