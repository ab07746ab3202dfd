#include <cstdint>

#include "ml/kernel/sequence/pooled_column.h"
#include "ml/kernel/sequence/step_pooling.h"

namespace parasol::cpu {

absl::Status PoolSteps(Device& /*device*/, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y) {
  for (int64_t i = 0; i < shape.examples * shape.channels; ++i) {
    const PooledColumn column(shape, x, mask, i);
    y[i] = pooling == StepPooling::kMax ? column.Max() : column.Average();
  }
  return absl::OkStatus();
}

absl::Status PoolStepsGradient(Device& /*device*/, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx) {
  for (int64_t i = 0; i < shape.examples * shape.channels; ++i) {
    const PooledColumn column(shape, x, mask, i);
    float* const to = dx + (column.x - x);
    if (pooling == StepPooling::kMax) {
      column.MaxGradient(y[i], dy[i], to);
    } else {
      column.AverageGradient(dy[i], to);
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
