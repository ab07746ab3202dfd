#include "ml/loss/loss.h"

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "ml/kernel/loss/binary_cross_entropy.h"
#include "ml/kernel/loss/categorical_cross_entropy.h"
#include "ml/kernel/loss/loss_batch.h"
#include "ml/kernel/loss/mean_squared_error.h"
#include "ml/loss/check_labels.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<const Loss>> Loss::Create(const job::Loss& loss,
                                                         int64_t outputs) {
  ASSIGN_OR_RETURN(const LossSpec spec, ResolveLoss(loss, outputs));
  return absl::WrapUnique(new Loss(spec));
}

absl::Status Loss::CheckLabels(const Batch& batch) const {
  return parasol::CheckLabels(spec_, batch);
}

absl::Status Loss::Compute(Device& device, const float* outputs,
                           const float* labels, const float* weights,
                           int64_t examples, float* losses,
                           float* gradient) const {
  const LossBatch batch = {{outputs, examples, spec_.outputs}, labels, weights};
  const LossResult out = {losses, gradient};
  const float smoothing = static_cast<float>(spec_.label_smoothing);
  switch (spec_.kind) {
    case job::Loss::kSparseCategoricalCrossentropy:
      return SparseCategoricalCrossEntropy(device, batch, smoothing, out);
    case job::Loss::kCategoricalCrossentropy:
      return CategoricalCrossEntropy(device, batch, smoothing, out);
    case job::Loss::kBinaryCrossentropy:
      return BinaryCrossEntropy(device, batch, smoothing, out);
    case job::Loss::kMeanSquaredError:
      return MeanSquaredError(device, batch, out);
    case job::Loss::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("a loss without a kind");
}

}  // namespace parasol
