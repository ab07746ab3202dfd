#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/sequence/pooled_column.h"
#include "ml/kernel/sequence/step_pooling.h"

namespace parasol::cuda {
namespace {

struct PoolColumn {
  StepPooling pooling;
  StepsShape shape;
  const float* x;
  const float* mask;
  float* y;
  __device__ void operator()(int64_t i) const {
    const PooledColumn column(shape, x, mask, i);
    y[i] = pooling == StepPooling::kMax ? column.Max() : column.Average();
  }
};

struct PoolColumnGradient {
  StepPooling pooling;
  StepsShape shape;
  const float* x;
  const float* mask;
  const float* y;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const PooledColumn column(shape, x, mask, i);
    float* const to = dx + (column.x - x);
    if (pooling == StepPooling::kMax) {
      column.MaxGradient(y[i], dy[i], to);
    } else {
      column.AverageGradient(dy[i], to);
    }
  }
};

}  // namespace

absl::Status PoolSteps(Device& device, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y) {
  return ForEach(device, "pooling of steps", shape.examples * shape.channels,
                 PoolColumn{pooling, shape, x, mask, y});
}

absl::Status PoolStepsGradient(Device& device, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx) {
  return ForEach(device, "gradient of a pooling of steps",
                 shape.examples * shape.channels,
                 PoolColumnGradient{pooling, shape, x, mask, y, dy, dx});
}

}  // namespace parasol::cuda
