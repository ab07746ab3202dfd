#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "base/status_macros.h"
#include "ml/kernel/cuda_device.h"
#include "ml/kernel/cuda_status.h"
#include "ml/kernel/pad.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

int64_t Blocks(int64_t size) {
  return std::min((size + kThreads - 1) / kThreads, kMaxBlocks);
}

// As plain arrays: std::array's functions are the host's.
struct Axes {
  explicit Axes(const PadShape& shape) : count(static_cast<int>(shape.axes)) {
    for (int i = 0; i < count; ++i) {
      input[i] = shape.input[i];
      before[i] = shape.before[i];
      output[i] = shape.before[i] + shape.input[i] + shape.after[i];
    }
  }

  // Where in x element `i` of y comes from; -1: it is padding.
  __device__ int64_t Source(int64_t i) const {
    int64_t source = 0;
    int64_t step = 1;
    for (int axis = count - 1; axis >= 0; --axis) {
      const int64_t index = i % output[axis] - before[axis];
      if (index < 0 || index >= input[axis]) return -1;
      source += index * step;
      step *= input[axis];
      i /= output[axis];
    }
    return source;
  }

  int count;
  int64_t input[PadShape::kMaxAxes];
  int64_t before[PadShape::kMaxAxes];
  int64_t output[PadShape::kMaxAxes];
};

__global__ void PadKernel(Axes axes, const float* x, int64_t size, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    const int64_t source = axes.Source(i);
    y[i] = source < 0 ? 0 : x[source];
  }
}

__global__ void PadGradientKernel(Axes axes, const float* dy, int64_t size,
                                  float* dx) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    const int64_t source = axes.Source(i);
    if (source >= 0) dx[source] = dy[i];
  }
}

CudaDevice& Cuda(Device& device) { return static_cast<CudaDevice&>(device); }

}  // namespace

absl::Status Pad(Device& device, const PadShape& shape, const float* x,
                 float* y) {
  ASSIGN_OR_RETURN(CUstream_st * stream, Cuda(device).ComputeStream());
  PadKernel<<<Blocks(shape.y_size()), kThreads, 0, stream>>>(Axes(shape), x,
                                                             shape.y_size(), y);
  return LaunchStatus("padding");
}

absl::Status PadGradient(Device& device, const PadShape& shape, const float* dy,
                         float* dx) {
  ASSIGN_OR_RETURN(CUstream_st * stream, Cuda(device).ComputeStream());
  PadGradientKernel<<<Blocks(shape.y_size()), kThreads, 0, stream>>>(
      Axes(shape), dy, shape.y_size(), dx);
  return LaunchStatus("gradient of padding");
}

}  // namespace parasol::cuda
