#include "ml/loss/loss.h"

#include "absl/strings/str_cat.h"
#include "ml/kernel/loss/loss_batch.h"
#include "ml/loss/check_labels.h"
#include "ml/loss/loss_kinds.h"

namespace parasol {

Loss::Loss(const LossSpec& spec) : spec_(spec), kind_(*KindOf(spec.loss)) {}

absl::Status Loss::CheckLabels(int64_t examples,
                               absl::Span<const float> labels) const {
  return parasol::CheckLabels(spec_, examples, labels);
}

void Loss::Compare(const ComparedExamples& examples, Comparison& out) const {
  if (kind_.compare != nullptr) kind_.compare(spec_.loss, examples, out);
}

int64_t Loss::ScratchElements(int64_t examples) const {
  return kind_.scratch == nullptr ? 0 : kind_.scratch(examples, spec_.outputs);
}

absl::Status Loss::Compute(Device& device, const Inputs& inputs, float* losses,
                           float* gradient) const {
  const LossBatch batch = {
      .outputs = {inputs.outputs, inputs.examples, spec_.outputs},
      .labels = inputs.labels,
      .weights = inputs.weights,
      .integers = inputs.integers,
      .numbers = inputs.numbers,
      .scratch = inputs.scratch};
  if (spec_.custom != nullptr) {
    if (!spec_.custom->RunsOn(device)) {
      return absl::UnimplementedError(
          absl::StrCat("the custom loss \"", spec_.loss.custom().type(),
                       "\" does not run on ", device.name(), ": --device=cpu"));
    }
    return spec_.custom->Compute(device, batch, {losses, gradient});
  }
  return kind_.compute(device, spec_.loss, batch, {losses, gradient});
}

}  // namespace parasol
