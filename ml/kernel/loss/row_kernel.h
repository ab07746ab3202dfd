#ifndef PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_
#define PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_

#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/loss_batch.h"

// Helpers for kernels of losses, in which one warp computes one row. All lanes
// of a warp have the same row, so they return together. Only for .cu files.
namespace parasol::cuda {

inline constexpr int kRowsPerBlock = 4;

// Numbers of blocks and threads with which a kernel over `rows` rows is
// launched.
inline dim3 RowBlocks(int64_t rows) {
  return dim3((rows + kRowsPerBlock - 1) / kRowsPerBlock);
}
inline dim3 RowThreads() { return dim3(kWarpSize, kRowsPerBlock); }

__device__ inline int64_t ThisRow() {
  return int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
}

__device__ inline float WeightOf(const LossBatch& batch, int64_t row) {
  return batch.weights == nullptr ? 1.0f : batch.weights[row];
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_KERNEL_LOSS_ROW_KERNEL_H_
