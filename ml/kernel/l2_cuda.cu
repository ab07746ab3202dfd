#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/l2.h"

namespace parasol::cuda {
namespace {

constexpr int kSumThreads = 1024;

// One block, so that the order of the sum, and its bits, are always the same.
// Regularized variables are small beside what a step reads of them.
__global__ void L2LossKernel(const float* w, int64_t size, float l2,
                             float* loss) {
  __shared__ double partial[kSumThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += kSumThreads) {
    sum += double{w[i]} * w[i];
  }
  partial[threadIdx.x] = sum;
  for (unsigned half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *loss = l2 * partial[0];
}

struct AddGradient {
  const float* w;
  float scale;
  float* gradient;
  __device__ void operator()(int64_t i) const { gradient[i] += scale * w[i]; }
};

}  // namespace

absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  Launch(L2LossKernel, 1, kSumThreads, stream, w, size, l2, loss);
  return LaunchStatus("L2 loss");
}

absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient) {
  return ForEach(device, "L2 gradient", size, AddGradient{w, 2 * l2, gradient});
}

}  // namespace parasol::cuda
