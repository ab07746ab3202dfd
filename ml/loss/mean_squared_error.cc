#include "ml/loss/mean_squared_error.h"

#include <cstdint>

#include "absl/status/status.h"
#include "ml/kernel/loss/mean_squared_error.h"

namespace parasol {

constinit const LossKind kMeanSquaredErrorKind = {
    .field = job::Loss::kMeanSquaredError,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers, .width = outputs};
        },
    .compute =
        [](Device& device, const job::Loss&, const LossBatch& batch,
           const LossResult& out) {
          return MeanSquaredError(device, batch, out);
        },
};

}  // namespace parasol
