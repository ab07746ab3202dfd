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
#include "ml/loss/loss.h"
#include "ml/model/plan.h"

namespace parasol {

// Memory that a pass through a plan needs beside variables, batch and backward
// pass: every step's output, the losses. Sized for the largest batch seen. Not
// thread-safe.
class PassMemory {
 public:
  // All but `terms`, the number of terms that are added to a pass's loss, must
  // outlive this object. `losses`: one for each output of the plan, or none.
  PassMemory(const Plan& plan, const std::vector<Loss>& losses, size_t terms,
             Device& device);

  // Makes room for a pass over `examples` examples. Memory that has to grow
  // loses its contents.
  //   ResourceExhausted  the device is full.
  absl::Status Reserve(int64_t examples);

  // Addresses on the device, for the present pass.
  Elements output(size_t step) const {
    return {plan_.steps[step].type, outputs_.data() + output_offsets_[step]};
  }
  // [examples], of one of the model's outputs.
  float* losses(size_t output) const {
    return losses_.data() + terms_ + output * examples_;
  }
  float* terms() const { return losses_.data(); }
  // Loss::Inputs::scratch, of one loss at a time.
  float* loss_scratch() const { return loss_scratch_.data(); }

  // Copies to the host, of losses and terms or of the model's outputs, which
  // are enqueued behind the work that is on the compute stream now.
  absl::Status FetchLosses();
  absl::Status FetchOutputs();
  // Two functions that block until the fetched values are on the host.
  // AwaitOutputs() returns [examples, elements of all outputs].
  absl::Status Await();
  absl::StatusOr<absl::Span<const float>> AwaitOutputs();
  // Returns one of the outputs, [examples, elements], behind Await().
  const float* OutputOnHost(size_t output) const {
    return device_.shares_host_memory()
               ? this->output(plan_.outputs[output].step).As<float>()
               : host_outputs_[output].data();
  }
  // Two functions that add losses on the host, one after the other: the terms,
  // and an output's losses to `sum`.
  double TermSum() const;
  double AddLosses(size_t output, double sum) const;

 private:
  absl::Status ReserveOutputs(int64_t examples);
  absl::Status FetchToHost(const float* from, size_t size, Array<float>& host);
  size_t NumLosses() const {
    return terms_ + loss_functions_.size() * examples_;
  }
  const float* LossesOnHost() const {
    return device_.shares_host_memory() ? losses_.data() : host_losses_.data();
  }

  const Plan& plan_;
  const std::vector<Loss>& loss_functions_;  // one per output, or none
  const size_t terms_;
  Device& device_;
  int64_t examples_ = 0;
  int64_t output_capacity_ = 0;  // examples

  // Room in floats, whatever the type of what lies there.
  // One array for the outputs of all steps, which huge pages hold then.
  std::vector<int64_t> output_offsets_;  // one per step
  Array<float> outputs_;
  Array<float> losses_;  // terms, then losses of each output
  Array<float> loss_scratch_;
  std::unique_ptr<Device::Event> fetched_;
  // Empty on the CPU.
  Array<float> host_losses_;
  std::vector<Array<float>> host_outputs_;  // one per output
  // All of several outputs, example by example.
  std::vector<float> joined_outputs_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_MEMORY_H_
