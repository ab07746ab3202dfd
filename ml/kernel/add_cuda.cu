#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "base/status_macros.h"
#include "ml/kernel/add.h"
#include "ml/kernel/cuda_device.h"
#include "ml/kernel/cuda_status.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

__global__ void AddKernel(const float* a, const float* b, int64_t size,
                          bool relu, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    const float sum = a[i] + b[i];
    y[i] = relu && sum < 0 ? 0 : sum;
  }
}

}  // namespace

absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y) {
  if (size == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const int64_t blocks = std::min((size + kThreads - 1) / kThreads, kMaxBlocks);
  AddKernel<<<blocks, kThreads, 0, stream>>>(a, b, size,
                                             epilogue == AddEpilogue::kRelu, y);
  return LaunchStatus("addition");
}

}  // namespace parasol::cuda
