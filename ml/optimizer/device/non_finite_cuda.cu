#include <cfloat>
#include <cmath>
#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/non_finite.h"

namespace parasol::cuda {
namespace {

struct CountOthers {
  const float* values;
  float* count;

  __device__ void operator()(int64_t i) const {
    const bool is_finite = fabsf(values[i]) <= FLT_MAX;
    if (!is_finite) atomicAdd(count, 1.0f);
  }
};

}  // namespace

absl::Status CountNonFinite(Device& device, const float* values, int64_t size,
                            float* count) {
  return ForEach(device, "count of what is not finite", size,
                 CountOthers{.values = values, .count = count});
}

}  // namespace parasol::cuda
