#ifndef PARASOL_ML_KERNEL_SEQUENCE_RECURRENT_CELL_H_
#define PARASOL_ML_KERNEL_SEQUENCE_RECURRENT_CELL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// One step of a recurrent layer, for all examples of a batch. Arrays are
// float32, [examples, units] unless a comment says otherwise, and begin with
// what belongs to this step; `gates` of a cell is 4 for an LSTM and 3 for a
// GRU.
struct CellStep {
  int64_t examples = 0;
  int64_t units = 0;
  // The inputs' product with the kernel, and its bias: [examples, gates ·
  // units], with rows that begin `input_stride` numbers apart.
  const float* inputs = nullptr;
  int64_t input_stride = 0;
  // The product of `before` with the recurrent kernel, and its bias: [examples,
  // gates · units].
  const float* recurrent = nullptr;
  // An example whose number is not above .5 keeps its state in this step; null:
  // none does. Numbers are `mask_stride` apart.
  const float* mask = nullptr;
  int64_t mask_stride = 0;
  const float* before = nullptr;  // the output of the step before
};

// Arrays that a step's gradient reads and writes beside CellStep's.
struct CellGradient {
  // The gradient by the step's output from outside the layer; null for none.
  // Rows begin `dy_stride` numbers apart.
  const float* dy = nullptr;
  int64_t dy_stride = 0;
  // The gradient that came through the next step's product; null for the last
  // step.
  const float* through_product = nullptr;
  // The gradient that went around the next step's product, which this step
  // reads and replaces.
  float* around_product = nullptr;
  // Gradients by CellStep's `inputs` (rows `input_stride` apart) and
  // `recurrent`.
  float* inputs = nullptr;
  float* recurrent = nullptr;
};

// All functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.

// Keras's LSTM, with the gates i, f, c, o:
//   c = sigmoid(f) · c_before + sigmoid(i) · tanh(c's gate)
//   h = sigmoid(o) · tanh(c)
// Writes the gates' values to `gates` [examples, 4 · units], which the gradient
// reads.
absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h);

// `dc`: the gradient by `c`, which this function replaces by the one by
// `c_before`.
absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient);

// Keras's GRU with reset_after, with the gates z, r, h:
//   candidate = tanh(h's inputs + sigmoid(r) · h's recurrent)
//   h = sigmoid(z) · before + (1 - sigmoid(z)) · candidate
// Writes the gates' values, and h's recurrent part, to `gates` [examples, 4 ·
// units].
absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h);
absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h);
absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient);
absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h);
absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient);
}  // namespace cpu

namespace cuda {
absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h);
absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient);
absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h);
absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_RECURRENT_CELL_H_
