#ifndef PARASOL_ML_KERNEL_LOSS_BINARY_CROSS_ENTROPY_H_
#define PARASOL_ML_KERNEL_LOSS_BINARY_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// Computes the loss and its gradient from logits z and labels, both [rows,
// columns]. With the labels smoothed to y = label · (1 − s) + s / 2, p =
// sigmoid(z) and weights w:
//   loss[i] = −w[i] · Σ_j (y · log p + (1 − y) · log(1 − p)) / columns,
//   gradient[i, j] = w[i] · (p − y) / columns / rows.
// The loss is computed as max(z, 0) − z · y + log(1 + e^−|z|), which no finite
// logit overflows. Enqueues on the compute stream and returns. Error
// Unavailable: the device was lost.
absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out);
}  // namespace cpu

namespace cuda {
absl::Status BinaryCrossEntropy(Device& device, const LossBatch& batch,
                                float smoothing, const LossResult& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_BINARY_CROSS_ENTROPY_H_
