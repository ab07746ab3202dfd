#include "ml/model/pass_memory.h"

#include <algorithm>

#include "base/status_macros.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"

namespace parasol {

PassMemory::PassMemory(const Plan& plan, const std::vector<Loss>& losses,
                       size_t terms, Device& device)
    : plan_(plan),
      loss_functions_(losses),
      terms_(terms),
      device_(device),
      host_outputs_(plan.outputs.size()) {}

absl::Status PassMemory::Reserve(int64_t examples) {
  examples_ = examples;
  return examples > output_capacity_ ? ReserveOutputs(examples)
                                     : absl::OkStatus();
}

absl::Status PassMemory::ReserveOutputs(int64_t examples) {
  output_capacity_ = 0;
  // The old ones first, lest both are there at once.
  outputs_ = Array<float>();
  output_offsets_.clear();
  int64_t size = 0;
  for (const PlanStep& step : plan_.steps) {
    output_offsets_.push_back(size);
    size += AlignedElements(FloatsFor(step.type, examples * step.outputs));
  }
  ASSIGN_OR_RETURN(outputs_, device_.NewArray<float>(size));
  ASSIGN_OR_RETURN(losses_, device_.NewArray<float>(
                                terms_ + loss_functions_.size() * examples));
  int64_t scratch = 0;
  for (const Loss& loss : loss_functions_) {
    scratch = std::max(scratch, loss.ScratchElements(examples));
  }
  loss_scratch_ = Array<float>();
  ASSIGN_OR_RETURN(loss_scratch_, device_.NewArray<float>(scratch));
  ASSIGN_OR_RETURN(fetched_, device_.NewEvent());
  output_capacity_ = examples;
  return absl::OkStatus();
}

absl::Status PassMemory::FetchToHost(const float* from, size_t size,
                                     Array<float>& host) {
  if (device_.shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(GrowOnHost(device_, size, host));
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(device_.Copy(Device::Stream::kCopyOut,
                               absl::MakeConstSpan(from, size), host.data()));
  return device_.Record(Device::Stream::kCopyOut, *fetched_);
}

absl::Status PassMemory::FetchLosses() {
  if (NumLosses() == 0) return absl::OkStatus();
  return FetchToHost(losses_.data(), NumLosses(), host_losses_);
}

absl::Status PassMemory::FetchOutputs() {
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const PlanOutput& one = plan_.outputs[i];
    RETURN_IF_ERROR(FetchToHost(output(one.step), examples_ * one.elements,
                                host_outputs_[i]));
  }
  return absl::OkStatus();
}

absl::Status PassMemory::Await() { return device_.Wait(*fetched_); }

double PassMemory::TermSum() const {
  const float* const terms = LossesOnHost();
  double sum = 0;
  for (size_t i = 0; i < terms_; ++i) sum += terms[i];
  return sum;
}

double PassMemory::AddLosses(size_t output, double sum) const {
  const float* const losses = LossesOnHost() + terms_ + output * examples_;
  for (int64_t i = 0; i < examples_; ++i) sum += losses[i];
  return sum;
}

absl::StatusOr<absl::Span<const float>> PassMemory::AwaitOutputs() {
  RETURN_IF_ERROR(Await());
  if (plan_.outputs.size() == 1) {
    return absl::MakeConstSpan(OutputOnHost(0),
                               examples_ * plan_.outputs.front().elements);
  }
  int64_t width = 0;
  for (const PlanOutput& one : plan_.outputs) width += one.elements;
  joined_outputs_.resize(examples_ * width);
  float* to = joined_outputs_.data();
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const int64_t elements = plan_.outputs[i].elements;
    const float* from = OutputOnHost(i);
    for (int64_t example = 0; example < examples_; ++example) {
      std::copy_n(from + example * elements, elements, to + example * width);
    }
    to += elements;
  }
  return absl::MakeConstSpan(joined_outputs_);
}

}  // namespace parasol
