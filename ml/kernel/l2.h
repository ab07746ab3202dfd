#ifndef PARASOL_ML_KERNEL_L2_H_
#define PARASOL_ML_KERNEL_L2_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// One term of an L2 regularization, which adds l2 · (the sum of the squares of
// w) to a loss. Arrays are in the device's memory.
struct L2Term {
  const float* w = nullptr;
  int64_t size = 0;
  float l2 = 0;
  float* gradient = nullptr;  // only for AddL2Gradients(); does not overlap w
  // Rows of a table, whose values and gradients are then w and gradient, and
  // which has as many elements as w, at most `size`. An address in the device's
  // memory.
  const TableRows* rows = nullptr;
};

// Two functions that take many terms at once, because each launch of a small
// kernel costs as much as its work. Both enqueue on the compute stream and
// return. Error Unavailable: the device was lost.

// Computes losses[i] = l2 · Σ w² of term i, with the same bits every time on
// the same device.
absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses);

// Adds 2 · l2 · w to each term's gradient.
absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses);
absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms);
}  // namespace cpu

namespace cuda {
absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses);
absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_L2_H_
