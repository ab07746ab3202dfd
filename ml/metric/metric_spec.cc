#include "ml/metric/metric_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {
namespace {

using job::Metric;
using Metrics = std::vector<Metric::KindCase>;

Metrics DefaultMetrics(const LossSpec& loss) {
  if (loss.label.kind != LabelForm::Kind::kNumbers) return {Metric::kAccuracy};
  if (!loss.label.is_probability) return {Metric::kRootMeanSquaredError};
  if (loss.outputs > 1) return {Metric::kAccuracy};
  return {Metric::kAccuracy, Metric::kAuc};
}

bool HasMeaning(Metric::KindCase metric, const LabelForm& label) {
  const bool numbers = label.kind == LabelForm::Kind::kNumbers;
  switch (metric) {
    case Metric::kAccuracy:
      return !numbers || label.is_probability;
    case Metric::kLogLoss:
      return numbers && label.is_probability;
    case Metric::kAuc:
    case Metric::kRootMeanSquaredError:
    case Metric::kMeanAbsoluteError:
    case Metric::kMeanPrediction:
    case Metric::kMeanLabel:
      return numbers;
    case Metric::KIND_NOT_SET:
      break;
  }
  return false;
}

absl::Status Check(Metric::KindCase metric, const LossSpec& loss) {
  if (metric == Metric::KIND_NOT_SET) {
    return absl::InvalidArgumentError("no metric is chosen");
  }
  if (!HasMeaning(metric, loss.label)) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(metric), " can't be computed with the loss ", loss.name()));
  }
  if (metric == Metric::kAuc && loss.outputs != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "auc needs a model of one output, this one has ", loss.outputs));
  }
  return absl::OkStatus();
}

}  // namespace

const std::string& NameOf(Metric::KindCase metric) {
  return Metric::descriptor()->FindFieldByNumber(metric)->name();
}

absl::StatusOr<Metrics> ResolveMetrics(const job::Model& model,
                                       const LossSpec& loss) {
  if (model.metric().empty()) return DefaultMetrics(loss);
  Metrics metrics;
  for (int i = 0; i < model.metric_size(); ++i) {
    const Metric::KindCase metric = model.metric(i).kind_case();
    RETURN_IF_ERROR(Check(metric, loss)) << "metric[" << i << "]";
    if (std::count(metrics.begin(), metrics.end(), metric) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "metric[", i, "]: ", NameOf(metric), " appears twice; remove one"));
    }
    metrics.push_back(metric);
  }
  return metrics;
}

}  // namespace parasol
