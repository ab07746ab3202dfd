#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/mean_squared_error.h"
#include "ml/kernel/loss/row_kernel.h"

namespace parasol::cuda {
namespace {

__global__ void MeanSquaredErrorKernel(LossBatch batch, LossResult out) {
  const int64_t row = ThisRow();
  if (row >= batch.outputs.rows) return;
  const int64_t columns = batch.outputs.columns;
  const float weight = WeightOf(batch, row);
  const float scale = 2 * weight / columns / batch.outputs.rows;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kWarpSize) {
    const int64_t at = row * columns + i;
    const float difference = batch.outputs.data[at] - batch.labels[at];
    squares += difference * difference;
    if (out.gradient != nullptr) out.gradient[at] = scale * difference;
  }
  squares = WarpSum(squares);
  if (threadIdx.x == 0) out.losses[row] = weight * squares / columns;
}

}  // namespace

absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out) {
  if (batch.outputs.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  Launch(MeanSquaredErrorKernel, RowBlocks(batch.outputs.rows), RowThreads(),
         stream, batch, out);
  return LaunchStatus("mean squared error");
}

}  // namespace parasol::cuda
