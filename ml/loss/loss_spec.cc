#include "ml/loss/loss_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

// Class numbers come as float32, which holds all integers up to here.
constexpr int64_t kMaxClasses = int64_t{1} << 24;

absl::Status Fault(const job::Loss& loss, absl::string_view what) {
  const auto* const field =
      job::Loss::descriptor()->FindFieldByNumber(loss.kind_case());
  return absl::InvalidArgumentError(absl::StrCat("loss.", field->name(), what));
}

const job::CrossEntropy& CrossEntropyOf(const job::Loss& loss) {
  switch (loss.kind_case()) {
    case job::Loss::kSparseCategoricalCrossentropy:
      return loss.sparse_categorical_crossentropy();
    case job::Loss::kCategoricalCrossentropy:
      return loss.categorical_crossentropy();
    case job::Loss::kBinaryCrossentropy:
      return loss.binary_crossentropy();
    case job::Loss::kMeanSquaredError:
    case job::Loss::KIND_NOT_SET:
      break;
  }
  return job::CrossEntropy::default_instance();
}

bool IsCategorical(const job::Loss& loss) {
  return loss.has_categorical_crossentropy() ||
         loss.has_sparse_categorical_crossentropy();
}

}  // namespace

absl::StatusOr<LossSpec> ResolveLoss(const job::Loss& loss, int64_t outputs) {
  if (loss.kind_case() == job::Loss::KIND_NOT_SET) {
    return absl::InvalidArgumentError(
        "loss: no kind is chosen: sparse_categorical_crossentropy, "
        "categorical_crossentropy, binary_crossentropy or mean_squared_error");
  }
  const double smoothing = CrossEntropyOf(loss).label_smoothing();
  if (!(smoothing >= 0 && smoothing < 1)) {
    return Fault(loss, absl::StrCat(".label_smoothing: ", smoothing,
                                    " is not at least 0 and below 1"));
  }
  if (outputs < 1) {
    return Fault(loss, absl::StrCat(": the model has ", outputs, " outputs"));
  }
  if (IsCategorical(loss) && (outputs < 2 || outputs > kMaxClasses)) {
    return Fault(loss, absl::StrCat(": the model has ", outputs,
                                    " outputs, one for each class, which is "
                                    "not in 2 to ",
                                    kMaxClasses));
  }
  LossSpec spec;
  spec.kind = loss.kind_case();
  spec.label_smoothing = smoothing;
  spec.outputs = outputs;
  spec.label_width = loss.has_sparse_categorical_crossentropy() ? 1 : outputs;
  return spec;
}

}  // namespace parasol
