#include <cuda_runtime.h>

#include <cstdint>

#include "base/status_macros.h"
#include "ml/kernel/cuda_device.h"
#include "ml/kernel/cuda_status.h"
#include "ml/kernel/softmax_cross_entropy.h"

namespace parasol::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kRowsPerBlock = 4;
constexpr unsigned kAllLanes = 0xffffffff;
constexpr int64_t kNoColumn = INT64_MAX;

struct Largest {
  float value;
  int64_t column;
};

__device__ bool Beats(const Largest& a, const Largest& b) {
  return a.value > b.value || (a.value == b.value && a.column < b.column);
}

// The first largest of `row`, on every lane.
__device__ Largest WarpLargest(const float* row, int64_t columns, int lane) {
  Largest best =
      lane < columns ? Largest{row[lane], lane} : Largest{-INFINITY, kNoColumn};
  for (int64_t i = lane + kWarp; i < columns; i += kWarp) {
    if (row[i] > best.value) best = {row[i], i};
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const Largest other = {__shfl_xor_sync(kAllLanes, best.value, distance),
                           __shfl_xor_sync(kAllLanes, best.column, distance)};
    if (Beats(other, best)) best = other;
  }
  return best;
}

__device__ float WarpSum(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// One warp per row. All lanes of a warp have the same row, so none leaves early
// alone.
__global__ void SoftmaxCrossEntropyKernel(MatrixView logits,
                                          const int32_t* labels,
                                          CrossEntropyOutputs out) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= logits.rows) return;
  const int lane = threadIdx.x;
  const int64_t columns = logits.columns;
  const float* const z = logits.data + row * columns;
  const int32_t label = labels[row];
  const Largest largest = WarpLargest(z, columns, lane);
  float sum = 0;
  for (int64_t i = lane; i < columns; i += kWarp) {
    sum += expf(z[i] - largest.value);
  }
  sum = WarpSum(sum);
  if (lane == 0) {
    out.loss[row] = logf(sum) - (z[label] - largest.value);
    out.correct[row] = largest.column == label;
  }
  if (out.gradient == nullptr) return;
  const float mean = 1.0f / logits.rows;
  const float scale = mean / sum;
  for (int64_t i = lane; i < columns; i += kWarp) {
    const float target = i == label ? mean : 0;
    out.gradient[row * columns + i] =
        expf(z[i] - largest.value) * scale - target;
  }
}

}  // namespace

absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out) {
  if (logits.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const int64_t blocks = (logits.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  SoftmaxCrossEntropyKernel<<<blocks, dim3(kWarp, kRowsPerBlock), 0, stream>>>(
      logits, labels, out);
  return LaunchStatus("softmax cross-entropy");
}

}  // namespace parasol::cuda
