#ifndef PARASOL_ML_KERNEL_LOSS_PAIRWISE_LOGISTIC_LOSS_H_
#define PARASOL_ML_KERNEL_LOSS_PAIRWISE_LOGISTIC_LOSS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/loss/loss_batch.h"

namespace parasol {

// The pairs of one example, as ranges of places in an order of all examples: it
// is above the examples in [begin, lower_end), and below the examples in
// [higher_begin, end).
struct PairRanges {
  int32_t example;
  int32_t begin;
  int32_t lower_end;
  int32_t higher_begin;
  int32_t end;
};

// Computes the loss of scores s [rows, 1], with weights w, and its gradient.
// `batch.integers` are PairRanges [rows], in the order that they speak of, and
// `batch.scratch` has 2 · rows elements; labels are not read. With L(i) and
// H(i) the examples below and above i:
//   loss[i] = w[i] / |L(i)| · Σ_{j in L(i)} log(1 + exp(s[j] - s[i])), or 0 if
//     L(i) is empty,
//   gradient[i] = 1 / rows · (Σ_{j in H(i)} w[j] / |L(j)| · σ(s[i] - s[j])
//     - w[i] / |L(i)| · Σ_{j in L(i)} σ(s[j] - s[i])).
// A sum goes in the order of the places, so that its bits are the same every
// time. Enqueues on the compute stream and returns. Error Unavailable: the
// device was lost.
absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out);
}  // namespace cpu

namespace cuda {
absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_PAIRWISE_LOGISTIC_LOSS_H_
