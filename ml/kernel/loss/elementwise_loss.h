#ifndef PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_LOSS_H_
#define PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_LOSS_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/elementwise_term.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// Computes the loss and its gradient from outputs z and labels y, both [rows,
// columns], and weights w:
//   loss[i] = w[i] · Σ_j term.Loss(z[i, j], y[i, j]) / columns,
//   gradient[i, j] = w[i] · term.Slope(z[i, j], y[i, j]) / columns / rows.
// Enqueues on the compute stream and returns. Error Unavailable: the device was
// lost.
absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out);
}  // namespace cpu

namespace cuda {
absl::Status ElementwiseLoss(Device& device, const LossBatch& batch,
                             const ElementwiseTerm& term,
                             const LossResult& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_LOSS_H_
