#include "ml/loss/hinge.h"

#include <cstdint>

#include "absl/status/status.h"
#include "ml/kernel/loss/elementwise_loss.h"

namespace parasol {

constinit const LossKind kHingeKind = {
    .field = job::Loss::kHinge,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers,
                           .width = outputs,
                           .is_probability = true};
        },
    .compute =
        [](Device& device, const job::Loss&, const LossBatch& batch,
           const LossResult& out) {
          return ElementwiseLoss(device, batch, HingeTerm(), out);
        },
};

}  // namespace parasol
