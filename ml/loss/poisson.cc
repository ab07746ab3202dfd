#include "ml/loss/poisson.h"

#include <cstdint>

#include "absl/status/status.h"
#include "ml/kernel/loss/elementwise_loss.h"

namespace parasol {

constinit const LossKind kPoissonKind = {
    .field = job::Loss::kPoisson,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers,
                           .width = outputs,
                           .is_count = true};
        },
    .compute =
        [](Device& device, const job::Loss&, const LossBatch& batch,
           const LossResult& out) {
          return ElementwiseLoss(device, batch, PoissonTerm(), out);
        },
};

}  // namespace parasol
