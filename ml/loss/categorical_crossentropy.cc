#include "ml/loss/categorical_crossentropy.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ml/kernel/loss/categorical_cross_entropy.h"
#include "ml/loss/crossentropy_fields.h"

namespace parasol {

constinit const LossKind kCategoricalCrossentropyKind = {
    .field = job::Loss::kCategoricalCrossentropy,
    .fill_defaults =
        [](job::Loss& loss) {
          FillDefaults(*loss.mutable_categorical_crossentropy());
        },
    .check =
        [](const std::string& path, const job::Loss& loss) {
          return CheckOfClasses(path, loss.categorical_crossentropy());
        },
    .check_outputs = CheckClasses,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kOneHot, .width = outputs};
        },
    .compute =
        [](Device& device, const job::Loss& loss, const LossBatch& batch,
           const LossResult& out) {
          return CategoricalCrossEntropy(
              device, batch,
              static_cast<float>(
                  loss.categorical_crossentropy().label_smoothing()),
              out);
        },
};

}  // namespace parasol
