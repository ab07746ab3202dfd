#include <cstdint>

#include "ml/kernel/relu.h"

namespace parasol::cpu {

absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y) {
  for (int64_t i = 0; i < x.size(); ++i) {
    y.data[i] = x.data[i] < 0 ? 0 : x.data[i];
  }
  return absl::OkStatus();
}

absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx) {
  for (int64_t i = 0; i < y.size(); ++i) {
    dx.data[i] = y.data[i] > 0 ? dy.data[i] : 0;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
