#include "ml/loss/check_labels.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

// Probabilities are often written with two decimals.
constexpr double kSumTolerance = 0.01;

absl::Status Fault(const LossSpec& loss, const Batch& batch, size_t position,
                   absl::string_view what) {
  const size_t example = position / loss.label.width;
  const size_t column = position % loss.label.width;
  return absl::InvalidArgumentError(absl::StrCat(
      "label ", batch.labels[position],
      loss.label.width > 1 ? absl::StrCat(" of output ", column) : "",
      " of example ", example, " of the batch is ", what));
}

absl::Status CheckClassNumbers(const LossSpec& loss, const Batch& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const float label = batch.labels[i];
    if (label >= 0 && label < loss.outputs && label == std::floor(label)) {
      continue;
    }
    return Fault(loss, batch, i,
                 absl::StrCat("not a class from 0 to ", loss.outputs - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckProbabilities(const LossSpec& loss, const Batch& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const float label = batch.labels[i];
    if (label >= 0 && label <= 1) continue;
    return Fault(loss, batch, i, "not between 0 and 1");
  }
  return absl::OkStatus();
}

absl::Status CheckSums(const LossSpec& loss, const Batch& batch) {
  for (int64_t example = 0; example < batch.size; ++example) {
    double sum = 0;
    for (int64_t i = 0; i < loss.label.width; ++i) {
      sum += batch.labels[example * loss.label.width + i];
    }
    if (std::fabs(sum - 1) <= kSumTolerance) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the labels of example ", example, " of the batch add up to ", sum,
        "; probabilities of classes must add up to 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckFinite(const LossSpec& loss, const Batch& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const float label = batch.labels[i];
    if (!std::isfinite(label)) return Fault(loss, batch, i, "not finite");
    if (loss.label.is_count && label < 0) {
      return Fault(loss, batch, i, "a count below 0");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLabels(const LossSpec& loss, const Batch& batch) {
  const int64_t labels = batch.size * loss.label.width;
  if (batch.labels.size() != static_cast<size_t>(labels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples has ",
                     batch.labels.size(), " labels, not ", labels));
  }
  switch (loss.label.kind) {
    case LabelForm::Kind::kClass:
      return CheckClassNumbers(loss, batch);
    case LabelForm::Kind::kOneHot: {
      const absl::Status each = CheckProbabilities(loss, batch);
      return each.ok() ? CheckSums(loss, batch) : each;
    }
    case LabelForm::Kind::kNumbers:
      break;
  }
  return loss.label.is_probability ? CheckProbabilities(loss, batch)
                                   : CheckFinite(loss, batch);
}

}  // namespace parasol
