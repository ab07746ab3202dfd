#include "ml/loss/sparse_categorical_crossentropy.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ml/kernel/loss/categorical_cross_entropy.h"
#include "ml/loss/crossentropy_fields.h"

namespace parasol {

constinit const LossKind kSparseCategoricalCrossentropyKind = {
    .field = job::Loss::kSparseCategoricalCrossentropy,
    .fill_defaults =
        [](job::Loss& loss) {
          FillDefaults(*loss.mutable_sparse_categorical_crossentropy());
        },
    .check =
        [](const std::string& path, const job::Loss& loss) {
          return CheckOfClasses(path, loss.sparse_categorical_crossentropy());
        },
    .check_outputs = CheckClasses,
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kClass, .classes = outputs};
        },
    .compute =
        [](Device& device, const job::Loss& loss, const LossBatch& batch,
           const LossResult& out) {
          return SparseCategoricalCrossEntropy(
              device, batch,
              static_cast<float>(
                  loss.sparse_categorical_crossentropy().label_smoothing()),
              out);
        },
};

}  // namespace parasol
