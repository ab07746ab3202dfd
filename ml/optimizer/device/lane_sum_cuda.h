#ifndef PARASOL_ML_OPTIMIZER_DEVICE_LANE_SUM_CUDA_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_LANE_SUM_CUDA_H_

#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/optimizer/rule/clip.h"

// The sum of rule/clip.h in a block of kSumLanes threads. Only for .cu files.
namespace parasol::cuda {

// Returns, in thread 0 of the block, the sum of term(i) for `i` from `begin` in
// the order of rule/clip.h. `lanes` is the block's shared memory.
template <typename Term>
__device__ double SumInLanes(double* lanes, int64_t begin, int64_t end,
                             const Term& term) {
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kSumLanes) {
    sum += term(i);
  }
  lanes[threadIdx.x] = sum;
  for (unsigned half = kSumLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  return lanes[threadIdx.x];
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_LANE_SUM_CUDA_H_
