#ifndef PARASOL_ML_MODEL_PASS_MEMORY_H_
#define PARASOL_ML_MODEL_PASS_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/arena.h"
#include "ml/model/plan.h"

namespace parasol {

// What a pass through a plan needs beside variables and batch: every step's
// output, the gradients between the steps, the losses. As large as the largest
// batch seen. Gradients that are not needed at the same time share their
// memory. Not thread-safe.
class PassMemory {
 public:
  // Both must outlive it. `terms`: numbers that are added to a pass's loss.
  PassMemory(const Plan& plan, size_t terms, Device& device);

  // Makes room for a pass over so many examples; `with_gradients` once it is to
  // be a backward pass too. What was there is gone when there was not enough.
  //   ResourceExhausted  the device is full.
  absl::Status Reserve(int64_t examples, bool with_gradients);

  // On the device, of the present pass.
  float* output(size_t step) const { return outputs_[step].data(); }
  float* gradient(size_t buffer) const {
    return gradients_.data() + layout_.offsets[buffer];
  }
  float* losses() const { return losses_.data() + terms_; }  // [examples]
  float* term(size_t index) const { return losses_.data() + index; }

  // Starts to bring losses and terms, or the model's output, to the host once
  // the compute stream gets here.
  absl::Status FetchLosses();
  absl::Status FetchOutput();
  // Waits for what was fetched. The sum of all losses, and the terms times the
  // number of examples.
  absl::StatusOr<double> AwaitLossSum();
  absl::StatusOr<absl::Span<const float>> AwaitOutput();

 private:
  absl::Status ReserveOutputs(int64_t examples);
  absl::Status ReserveGradients(int64_t examples);
  absl::Status FetchToHost(const float* from, size_t size, Array<float>& host);

  const Plan& plan_;
  const size_t terms_;
  Device& device_;
  int64_t examples_ = 0;
  int64_t output_capacity_ = 0;    // examples
  int64_t gradient_capacity_ = 0;  // examples

  std::vector<Array<float>> outputs_;  // by step
  ArenaLayout layout_;                 // of gradient buffers in gradients_
  Array<float> gradients_;
  Array<float> losses_;  // terms, then losses
  std::unique_ptr<Device::Event> fetched_;
  Array<float> host_losses_, host_output_;  // empty on the CPU
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_MEMORY_H_
