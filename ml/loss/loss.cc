#include "ml/loss/loss.h"

#include "ml/kernel/loss/loss_batch.h"
#include "ml/loss/check_labels.h"
#include "ml/loss/loss_kinds.h"

namespace parasol {

Loss::Loss(const LossSpec& spec) : spec_(spec), kind_(*KindOf(spec.loss)) {}

absl::Status Loss::CheckLabels(int64_t examples,
                               absl::Span<const float> labels) const {
  return parasol::CheckLabels(spec_, examples, labels);
}

absl::Status Loss::Compute(Device& device, const float* outputs,
                           const float* labels, const float* weights,
                           int64_t examples, float* losses,
                           float* gradient) const {
  const LossBatch batch = {{outputs, examples, spec_.outputs}, labels, weights};
  return kind_.compute(device, spec_.loss, batch, {losses, gradient});
}

}  // namespace parasol
