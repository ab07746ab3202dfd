#ifndef PARASOL_ML_KERNEL_INTERACTION_WEIGHTED_SUM_H_
#define PARASOL_ML_KERNEL_INTERACTION_WEIGHTED_SUM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// The shape of `examples` matrices x [count, width], which lie one after
// another, and of the weights w [count] of each one's rows.
struct WeightedRows {
  int64_t examples = 0;
  int64_t count = 0;
  int64_t width = 0;
};

// Both functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.

// Computes y [examples, width], y[k] = Σ_n w[n] · x[n, k].
absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y);

// Computes dw[n] = Σ_k dy[k] · x[n, k] and dx[n, k] = w[n] · dy[k] from dy
// [examples, width]. One of dw [examples, count] and dx [examples, count,
// width] may be null: it is not wanted.
absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y);
absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx);
}  // namespace cpu

namespace cuda {
absl::Status WeightedSum(Device& device, const WeightedRows& shape,
                         const float* w, const float* x, float* y);
absl::Status WeightedSumGradients(Device& device, const WeightedRows& shape,
                                  const float* w, const float* x,
                                  const float* dy, float* dw, float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_INTERACTION_WEIGHTED_SUM_H_
