#include <cstdint>
#include <variant>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/elementwise_loss.h"
#include "ml/kernel/loss/row_kernel.h"

namespace parasol::cuda {
namespace {

template <typename Term>
__global__ void ElementwiseLossKernel(LossBatch batch, Term term,
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
    const float y = batch.labels[at];
    sum += term.Loss(z, y);
    if (out.gradient != nullptr) out.gradient[at] = scale * term.Slope(z, y);
  }
  sum = WarpSum(sum);
  if (threadIdx.x == 0) out.losses[row] = weight * sum / columns;
}

}  // namespace

absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out) {
  if (batch.outputs.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const auto launch = [&]<typename Term>(const Term& chosen) {
    Launch(ElementwiseLossKernel<Term>, RowBlocks(batch.outputs.rows),
           RowThreads(), stream, batch, chosen, out);
  };
  std::visit(launch, term);
  return LaunchStatus("loss by elements");
}

}  // namespace parasol::cuda
