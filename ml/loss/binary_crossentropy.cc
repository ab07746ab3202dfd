#include "ml/loss/binary_crossentropy.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ml/kernel/loss/binary_cross_entropy.h"
#include "ml/kernel/loss/elementwise_loss.h"
#include "ml/loss/crossentropy_fields.h"

namespace parasol {

constinit const LossKind kBinaryCrossentropyKind = {
    .field = job::Loss::kBinaryCrossentropy,
    .fill_defaults =
        [](job::Loss& loss) {
          FillDefaults(*loss.mutable_binary_crossentropy());
        },
    .check =
        [](const std::string& path, const job::Loss& loss) {
          return CheckRanges(path, loss.binary_crossentropy());
        },
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers,
                           .width = outputs,
                           .is_probability = true};
        },
    .compute =
        [](Device& device, const job::Loss& loss, const LossBatch& batch,
           const LossResult& out) {
          const auto smoothing =
              static_cast<float>(loss.binary_crossentropy().label_smoothing());
          return loss.binary_crossentropy().from_logits()
                     ? BinaryCrossEntropy(device, batch, smoothing, out)
                     : ElementwiseLoss(device, batch,
                                       ProbabilityTerm{smoothing}, out);
        },
};

}  // namespace parasol
