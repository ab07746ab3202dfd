#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/multiply.h"

namespace parasol::cuda {
namespace {

struct ProductOf {
  const float* a;
  const float* b;
  const float* addend;
  float* y;
  __device__ void operator()(int64_t i) const {
    const float product = __fmul_rn(a[i], b[i]);
    y[i] = addend == nullptr ? product : __fadd_rn(product, addend[i]);
  }
};

}  // namespace

absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y) {
  return ForEach(device, "multiplication", size, ProductOf{a, b, addend, y});
}

}  // namespace parasol::cuda
