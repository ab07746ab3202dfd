#include "ml/loss/mean_absolute_error.h"

#include <cstdint>

#include "absl/status/status.h"
#include "ml/kernel/loss/elementwise_loss.h"

namespace parasol {

constinit const LossKind kMeanAbsoluteErrorKind = {
    .field = job::Loss::kMeanAbsoluteError,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers, .width = outputs};
        },
    .compute =
        [](Device& device, const job::Loss&, const LossBatch& batch,
           const LossResult& out) {
          return ElementwiseLoss(device, batch, AbsoluteErrorTerm(), out);
        },
};

}  // namespace parasol
