#ifndef PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_
#define PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_

#include <cstdint>

#include "ml/kernel/loss/loss_batch.h"

// Helpers for kernels of losses, in which one warp computes one row. All lanes
// of a warp have the same row, so they return together. Only for .cu files.
namespace parasol::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kRowsPerBlock = 4;
inline constexpr unsigned kAllLanes = 0xffffffff;

// Numbers of blocks and threads with which a kernel over `rows` rows is
// launched.
inline dim3 RowBlocks(int64_t rows) {
  return dim3((rows + kRowsPerBlock - 1) / kRowsPerBlock);
}
inline dim3 RowThreads() { return dim3(kWarp, kRowsPerBlock); }

__device__ inline int64_t ThisRow() {
  return int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
}

__device__ inline float WeightOf(const LossBatch& batch, int64_t row) {
  return batch.weights == nullptr ? 1.0f : batch.weights[row];
}

// The sum, or the largest, of all lanes' values, on every lane.
__device__ inline float WarpSum(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}
__device__ inline float WarpMax(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_
