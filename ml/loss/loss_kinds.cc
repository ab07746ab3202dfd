#include "ml/loss/loss_kinds.h"

#include "ml/loss/binary_crossentropy.h"
#include "ml/loss/binary_focal_crossentropy.h"
#include "ml/loss/categorical_crossentropy.h"
#include "ml/loss/custom_loss.h"
#include "ml/loss/hinge.h"
#include "ml/loss/huber.h"
#include "ml/loss/in_batch_softmax.h"
#include "ml/loss/mean_absolute_error.h"
#include "ml/loss/mean_squared_error.h"
#include "ml/loss/pairwise_logistic.h"
#include "ml/loss/poisson.h"
#include "ml/loss/sparse_categorical_crossentropy.h"

namespace parasol {
namespace {

constexpr const LossKind* kKinds[] = {
    &kSparseCategoricalCrossentropyKind,
    &kCategoricalCrossentropyKind,
    &kBinaryCrossentropyKind,
    &kMeanSquaredErrorKind,
    &kMeanAbsoluteErrorKind,
    &kHuberKind,
    &kHingeKind,
    &kPoissonKind,
    &kBinaryFocalCrossentropyKind,
    &kPairwiseLogisticKind,
    &kInBatchSoftmaxKind,
    &kCustomLossKind,
};

}  // namespace

absl::Span<const LossKind* const> LossKinds() { return kKinds; }

const LossKind* KindOf(const job::Loss& loss) {
  for (const LossKind* const kind : kKinds) {
    if (kind->field == loss.kind_case()) return kind;
  }
  return nullptr;
}

bool ReadsLabels(const job::Loss& loss) { return !loss.has_in_batch_softmax(); }

bool ComparesExamples(const job::Loss& loss) {
  const LossKind* const kind = KindOf(loss);
  return kind != nullptr && kind->compare != nullptr;
}

std::vector<ExampleColumn> ColumnsOf(const job::Loss& loss) {
  const LossKind* const kind = KindOf(loss);
  if (kind == nullptr || kind->columns == nullptr) return {};
  return kind->columns(loss);
}

void FillDefaults(job::Loss& loss) {
  const LossKind* const kind = KindOf(loss);
  if (kind != nullptr && kind->fill_defaults != nullptr) {
    kind->fill_defaults(loss);
  }
}

}  // namespace parasol
