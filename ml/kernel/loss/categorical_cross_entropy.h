#ifndef PARASOL_ML_KERNEL_LOSS_CATEGORICAL_CROSS_ENTROPY_H_
#define PARASOL_ML_KERNEL_LOSS_CATEGORICAL_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// Of logits z, labels smoothed to y = label · (1 − s) + s / columns, p =
// softmax(row of z) and weights w:
//   loss[i] = −w[i] · Σ_j y · log p,
//   gradient[i, j] = w[i] · (p · Σ_k y[i, k] − y) / rows.
// A row's largest logit is subtracted before the exponential, so that no finite
// logit overflows. Enqueue on the compute stream and return. Unavailable: the
// device was lost.

// `labels` are [rows, columns], a row's sum usually 1.
absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out);

// `labels` are [rows]: class numbers, integers in [0, columns), which stand for
// a 1 in this column and 0 in the others.
absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out);

// What the functions above choose from.
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
