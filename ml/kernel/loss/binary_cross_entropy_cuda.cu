#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/binary_cross_entropy.h"
#include "ml/kernel/loss/row_kernel.h"

namespace parasol::cuda {
namespace {

__global__ void BinaryCrossEntropyKernel(LossBatch batch, float smoothing,
                                         LossResult out) {
  const int64_t row = ThisRow();
  if (row >= batch.outputs.rows) return;
  const int64_t columns = batch.outputs.columns;
  const float weight = WeightOf(batch, row);
  const float scale = weight / columns / batch.outputs.rows;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kWarpSize) {
    const int64_t at = row * columns + i;
    const float z = batch.outputs.data[at];
    const float y = batch.labels[at] * (1 - smoothing) + smoothing / 2;
    const float e = expf(-fabsf(z));
    sum += (z < 0 ? 0 : z) - z * y + log1pf(e);
    if (out.gradient != nullptr) {
      out.gradient[at] = scale * ((z < 0 ? e : 1) / (1 + e) - y);
    }
  }
  sum = WarpSum(sum);
  if (threadIdx.x == 0) out.losses[row] = weight * sum / columns;
}

}  // namespace

absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out) {
  if (batch.outputs.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  Launch(BinaryCrossEntropyKernel, RowBlocks(batch.outputs.rows), RowThreads(),
         stream, batch, smoothing, out);
  return LaunchStatus("binary cross-entropy");
}

}  // namespace parasol::cuda
