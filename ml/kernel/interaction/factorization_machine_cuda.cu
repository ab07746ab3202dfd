#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/interaction/factorization_machine.h"

namespace parasol::cuda {
namespace {

// x[f] times the sum of the fields before it: no difference of squares, which
// would lose digits.
struct Interact {
  Interaction shape;
  const float* x;
  float* y;
  __device__ void operator()(int64_t example, int lane) const {
    const float* const matrix = x + example * shape.fields * shape.width;
    float total = 0;
    for (int64_t k = lane; k < shape.width; k += kWarpSize) {
      float sum = 0;
      for (int64_t f = 0; f < shape.fields; ++f) {
        const float value = matrix[f * shape.width + k];
        total += value * sum;
        sum += value;
      }
    }
    total = WarpSum(total);
    if (lane == 0) y[example] = total;
  }
};

// Gradient of one column of an example.
struct Gradient {
  Interaction shape;
  const float* x;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t example = i / shape.width;
    const int64_t begin =
        example * shape.fields * shape.width + i % shape.width;
    float sum = 0;
    for (int64_t f = 0; f < shape.fields; ++f) {
      sum += x[begin + f * shape.width];
    }
    for (int64_t f = 0; f < shape.fields; ++f) {
      const int64_t at = begin + f * shape.width;
      dx[at] = dy[example] * (sum - x[at]);
    }
  }
};

}  // namespace

absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y) {
  return ForEachRow(device, "factorization machine", shape.examples,
                    Interact{shape, x, y});
}

absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx) {
  return ForEach(device, "gradient of factorization machine",
                 shape.examples * shape.width, Gradient{shape, x, dy, dx});
}

}  // namespace parasol::cuda
