#ifndef PARASOL_ML_DEVICE_CUDA_LAUNCH_H_
#define PARASOL_ML_DEVICE_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_status.h"

// The launch of kernels, and kernels that apply one function to each index.
// Only for .cu files.
namespace parasol::cuda {

constexpr int kWarpSize = 32;

// Launches `kernel` on `stream`. LaunchStatus() says how that went. All
// launches go through this function: with --config=cuda_host there is no
// <<<>>>, and third_party/cuda_on_host runs the grid.
template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
            CUstream_st* stream,
            std::type_identity_t<Parameters>... arguments) {
#ifdef PARASOL_CUDA_ON_HOST
  cuda_on_host::Launch(kernel, blocks, threads, stream, arguments...);
#else
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
#endif
}

template <typename Function>
__global__ void ForEachKernel(int64_t size, Function function) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    function(i);
  }
}

template <typename Function>
__global__ void ForEachRowKernel(int64_t rows, Function function) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  // All lanes of a warp have the same row, so they return together.
  if (row < rows) function(row, static_cast<int>(threadIdx.x));
}

// Launches function(i) for each i below `size`. `name` is the kernel's name in
// errors.
template <typename Function>
absl::Status ForEach(CUstream_st* stream, absl::string_view name, int64_t size,
                     const Function& function) {
  constexpr int kThreads = 256;
  constexpr int64_t kMaxBlocks = 4096;
  if (size == 0) return absl::OkStatus();
  const int64_t blocks = std::min((size + kThreads - 1) / kThreads, kMaxBlocks);
  Launch(ForEachKernel<Function>, blocks, kThreads, stream, size, function);
  return LaunchStatus(name);
}

template <typename Function>
absl::Status ForEach(Device& device, absl::string_view name, int64_t size,
                     const Function& function) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return ForEach(stream, name, size, function);
}

// Launches function(row, lane) for each row below `rows` and each lane of a
// warp.
template <typename Function>
absl::Status ForEachRow(Device& device, absl::string_view name, int64_t rows,
                        const Function& function) {
  constexpr int kRowsPerBlock = 4;
  if (rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  Launch(ForEachRowKernel<Function>, blocks, dim3(kWarpSize, kRowsPerBlock),
         stream, rows, function);
  return LaunchStatus(name);
}

// Returns the sum of all lanes' values, on every lane.
__device__ inline float WarpSum(float value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, distance);
  }
  return value;
}

__device__ inline float WarpMax(float value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
  }
  return value;
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_DEVICE_CUDA_LAUNCH_H_
