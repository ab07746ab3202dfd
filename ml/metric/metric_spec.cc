#include "ml/metric/metric_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

using job::Loss;
using job::Metric;
using Metrics = std::vector<Metric::KindCase>;

const std::string& LossName(Loss::KindCase loss) {
  return Loss::descriptor()->FindFieldByNumber(loss)->name();
}

Metrics DefaultMetrics(const LossSpec& loss) {
  switch (loss.kind) {
    case Loss::kSparseCategoricalCrossentropy:
    case Loss::kCategoricalCrossentropy:
      return {Metric::kAccuracy};
    case Loss::kBinaryCrossentropy:
      if (loss.outputs > 1) return {Metric::kAccuracy};
      return {Metric::kAccuracy, Metric::kAuc};
    case Loss::kMeanSquaredError:
      return {Metric::kRootMeanSquaredError};
    case Loss::KIND_NOT_SET:
      break;
  }
  return {};
}

bool HasMeaning(Metric::KindCase metric, Loss::KindCase loss) {
  const bool numbers =
      loss == Loss::kBinaryCrossentropy || loss == Loss::kMeanSquaredError;
  switch (metric) {
    case Metric::kAccuracy:
      return loss != Loss::kMeanSquaredError;
    case Metric::kLogLoss:
      return loss == Loss::kBinaryCrossentropy;
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
  if (!HasMeaning(metric, loss.kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(metric), " can't be computed with the loss ",
                     LossName(loss.kind)));
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
