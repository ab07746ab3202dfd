#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/add.h"

namespace parasol::cuda {
namespace {

struct SumOf {
  const float* a;
  const float* b;
  bool relu;
  float* y;
  __device__ void operator()(int64_t i) const {
    const float sum = a[i] + b[i];
    y[i] = relu && sum < 0 ? 0 : sum;
  }
};

}  // namespace

absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y) {
  return ForEach(device, "addition", size,
                 SumOf{a, b, epilogue == AddEpilogue::kRelu, y});
}

}  // namespace parasol::cuda
