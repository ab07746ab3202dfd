#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/candidate_softmax.h"
#include "ml/kernel/loss/row_kernel.h"

namespace parasol::cuda {
namespace {

// One warp computes one example's row.
__global__ void CandidateKernel(CandidateBatch batch, bool with_gradient,
                                float* products, float* losses) {
  const int64_t place = ThisRow();
  if (place >= batch.rows) return;
  const int64_t row = batch.first + place;
  float* const values = products + place * batch.size;
  const int32_t own = batch.candidates[row];
  if (own < 0) {
    if (threadIdx.x == 0) losses[place] = 0;
    for (int64_t j = threadIdx.x; j < batch.size; j += kWarpSize) values[j] = 0;
    return;
  }
  const auto is_candidate = [=](int64_t j) {
    return j == row || (batch.candidates[j] >= 0 && batch.candidates[j] != own);
  };
  const auto logit = [=](int64_t j) {
    const float log_probability =
        batch.log_probabilities == nullptr ? 0.0f : batch.log_probabilities[j];
    return values[j] / batch.temperature - log_probability;
  };
  // fmaxf() passes NaN over, which the sum of exponentials then does not.
  float largest = -INFINITY;
  for (int64_t j = threadIdx.x; j < batch.size; j += kWarpSize) {
    if (is_candidate(j)) largest = fmaxf(largest, logit(j));
  }
  largest = WarpMax(largest);
  // Each lane reads and writes elements of its own alone.
  float sum = 0;
  float mine = 0;
  for (int64_t j = threadIdx.x; j < batch.size; j += kWarpSize) {
    if (is_candidate(j)) sum += expf(logit(j) - largest);
    if (j == row) mine = logit(j);
  }
  sum = WarpSum(sum);
  mine = WarpSum(mine);
  const float weight = batch.weights == nullptr ? 1.0f : batch.weights[row];
  if (threadIdx.x == 0) {
    losses[place] = weight * (logf(sum) - (mine - largest));
  }
  if (!with_gradient) return;
  const float scale =
      weight / (static_cast<float>(batch.size) * batch.temperature);
  for (int64_t j = threadIdx.x; j < batch.size; j += kWarpSize) {
    const float share =
        is_candidate(j) ? expf(logit(j) - largest) * (scale / sum) : 0.0f;
    values[j] = share - (j == row ? scale : 0.0f);
  }
}

}  // namespace

absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses) {
  if (batch.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  Launch(CandidateKernel, RowBlocks(batch.rows), RowThreads(), stream, batch,
         with_gradient, products, losses);
  return LaunchStatus("softmax over candidates");
}

}  // namespace parasol::cuda
