#include "ml/loss/huber.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "ml/kernel/loss/elementwise_loss.h"

namespace parasol {

constinit const LossKind kHuberKind = {
    .field = job::Loss::kHuber,
    .fill_defaults =
        [](job::Loss& loss) {
          PARASOL_SET_DEFAULT(*loss.mutable_huber(), delta, 1.0);
        },
    .check =
        [](const std::string& path, const job::Loss& loss) {
          return RequireBetween(absl::StrCat(path, ".delta"),
                                loss.huber().delta(), 1e-6, 1e6);
        },
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers, .width = outputs};
        },
    .compute =
        [](Device& device, const job::Loss& loss, const LossBatch& batch,
           const LossResult& out) {
          return ElementwiseLoss(
              device, batch,
              HuberTerm{static_cast<float>(loss.huber().delta())}, out);
        },
};

}  // namespace parasol
