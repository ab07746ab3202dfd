#include "ml/loss/check_labels.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

using Labels = absl::Span<const float>;

// Probabilities are often written with two decimals.
constexpr double kSumTolerance = 0.01;

absl::Status LabelFault(const LossSpec& loss, Labels labels, size_t position,
                        absl::string_view what) {
  const size_t example = position / loss.label.width;
  const size_t column = position % loss.label.width;
  return absl::InvalidArgumentError(absl::StrCat(
      "label ", labels[position],
      loss.label.width > 1 ? absl::StrCat(" of output ", column) : "",
      " of example ", example, " of the batch is ", what));
}

absl::Status CheckClassNumbers(const LossSpec& loss, Labels labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const float label = labels[i];
    if (label >= 0 && label < loss.outputs && label == std::floor(label)) {
      continue;
    }
    return LabelFault(loss, labels, i,
                      absl::StrCat("not a class from 0 to ", loss.outputs - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckProbabilities(const LossSpec& loss, Labels labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const float label = labels[i];
    if (label >= 0 && label <= 1) continue;
    return LabelFault(loss, labels, i, "not between 0 and 1");
  }
  return absl::OkStatus();
}

absl::Status CheckSums(const LossSpec& loss, Labels labels) {
  const auto examples = static_cast<int64_t>(labels.size()) / loss.label.width;
  for (int64_t example = 0; example < examples; ++example) {
    double sum = 0;
    for (int64_t i = 0; i < loss.label.width; ++i) {
      sum += labels[example * loss.label.width + i];
    }
    if (std::fabs(sum - 1) <= kSumTolerance) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the labels of example ", example, " of the batch add up to ", sum,
        "; probabilities of classes must add up to 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckFinite(const LossSpec& loss, Labels labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const float label = labels[i];
    if (!std::isfinite(label)) return LabelFault(loss, labels, i, "not finite");
    if (loss.label.is_count && label < 0) {
      return LabelFault(loss, labels, i, "a count below 0");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLabels(const LossSpec& loss, int64_t examples,
                         absl::Span<const float> labels) {
  const int64_t wanted = examples * loss.label.width;
  if (labels.size() != static_cast<size_t>(wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", examples, " examples has ", labels.size(),
                     " labels, not ", wanted));
  }
  switch (loss.label.kind) {
    case LabelForm::Kind::kClass:
      return CheckClassNumbers(loss, labels);
    case LabelForm::Kind::kOneHot: {
      const absl::Status each = CheckProbabilities(loss, labels);
      return each.ok() ? CheckSums(loss, labels) : each;
    }
    case LabelForm::Kind::kNone:
      return absl::OkStatus();
    case LabelForm::Kind::kNumbers:
      break;
  }
  return loss.label.is_probability ? CheckProbabilities(loss, labels)
                                   : CheckFinite(loss, labels);
}

}  // namespace parasol
