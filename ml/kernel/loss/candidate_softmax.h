#ifndef PARASOL_ML_KERNEL_LOSS_CANDIDATE_SOFTMAX_H_
#define PARASOL_ML_KERNEL_LOSS_CANDIDATE_SOFTMAX_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Examples that have each other's candidates, and which of them are computed.
// All arrays are [size] and in the device's memory.
struct CandidateBatch {
  int64_t size = 0;
  // The examples from `first` on, `rows` of them; at most to `size`.
  int64_t first = 0;
  int64_t rows = 0;
  float temperature = 1;
  // Number of each example's candidate, equal for equal ones; below 0 for an
  // example that has no loss, and whose candidate is nobody's.
  const int32_t* candidates = nullptr;
  // Logarithm of each candidate's probability; null: all 0.
  const float* log_probabilities = nullptr;
  const float* weights = nullptr;  // null: all 1
};

// Computes the losses [rows] of a softmax over candidates. `products` [rows,
// size] has the dot products of example i's query and example j's candidate, i
// from `first` on. The candidates of example i are i itself and all j with
// another number. With
//   l[i, j] = products[i, j] / temperature - log_probabilities[j],
// p[i] the softmax of l[i] over the example's candidates and weights w:
//   losses[i] = -w[i] · log p[i, i].
// With `with_gradient` the products become the gradient of the mean of all
// `size` losses by them, w[i] / (size · temperature) · (p[i, j] - (1 if i =
// j)), and 0 for no candidates. A row's largest l is subtracted before the
// exponential. A row's bits do not depend on which rows are computed with it.
// Enqueues on the compute stream and returns. Error Unavailable: the device was
// lost.
absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses);
}  // namespace cpu

namespace cuda {
absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_CANDIDATE_SOFTMAX_H_
