#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "base/status_macros.h"
#include "ml/kernel/cuda_device.h"
#include "ml/kernel/cuda_status.h"
#include "ml/kernel/relu.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

int64_t Blocks(int64_t size) {
  return std::min((size + kThreads - 1) / kThreads, kMaxBlocks);
}

__global__ void ReluKernel(const float* x, int64_t size, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    y[i] = x[i] < 0 ? 0 : x[i];
  }
}

__global__ void ReluGradientKernel(const float* y, const float* dy,
                                   int64_t size, float* dx) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    dx[i] = y[i] > 0 ? dy[i] : 0;
  }
}

CudaDevice& Cuda(Device& device) { return static_cast<CudaDevice&>(device); }

}  // namespace

absl::Status Relu(Device& device, MatrixView x, MutableMatrixView y) {
  if (x.size() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, Cuda(device).ComputeStream());
  ReluKernel<<<Blocks(x.size()), kThreads, 0, stream>>>(x.data, x.size(),
                                                        y.data);
  return LaunchStatus("relu");
}

absl::Status ReluGradient(Device& device, MatrixView y, MatrixView dy,
                          MutableMatrixView dx) {
  if (y.size() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, Cuda(device).ComputeStream());
  ReluGradientKernel<<<Blocks(y.size()), kThreads, 0, stream>>>(
      y.data, dy.data, y.size(), dx.data);
  return LaunchStatus("gradient of relu");
}

}  // namespace parasol::cuda
