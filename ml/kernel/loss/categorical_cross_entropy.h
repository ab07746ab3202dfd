#ifndef PARASOL_ML_KERNEL_LOSS_CATEGORICAL_CROSS_ENTROPY_H_
#define PARASOL_ML_KERNEL_LOSS_CATEGORICAL_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// The functions of this header compute the loss and its gradient from logits z
// [rows, columns]. With the labels smoothed to y = label · (1 − s) + s /
// columns, p = softmax(row of z) and weights w:
//   loss[i] = −w[i] · Σ_j y · log p,
//   gradient[i, j] = w[i] · (p · Σ_k y[i, k] − y) / rows.
// A row's largest logit is subtracted before the exponential, so that no finite
// logit overflows. Both enqueue on the compute stream and return. Error
// Unavailable: the device was lost.

// Takes `labels` [rows, columns]; a row's sum is usually 1.
absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out);

// Takes `labels` [rows]: class numbers, integers in [0, columns). Each stands
// for a 1 in its column and 0 in the others.
absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out);
absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out);
}  // namespace cpu

namespace cuda {
absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out);
absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_CATEGORICAL_CROSS_ENTROPY_H_
