#ifndef PARASOL_ML_KERNEL_LOSS_MEAN_SQUARED_ERROR_H_
#define PARASOL_ML_KERNEL_LOSS_MEAN_SQUARED_ERROR_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// Computes the loss and its gradient from outputs z and labels y, both [rows,
// columns], and weights w:
//   loss[i] = w[i] · Σ_j (z[i, j] − y[i, j])² / columns,
//   gradient[i, j] = w[i] · 2 · (z[i, j] − y[i, j]) / columns / rows.
// Enqueues on the compute stream and returns. Error Unavailable: the device was
// lost.
absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out);
}  // namespace cpu

namespace cuda {
absl::Status MeanSquaredError(Device& device, const LossBatch& batch,
                              const LossResult& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_MEAN_SQUARED_ERROR_H_
