#include "evaluator/evaluator_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

// Returns true if the metric is a share, whose gauge's name ends with its unit.
bool IsShare(absl::string_view result) {
  const absl::string_view metric = MetricOf(result);
  if (metric == "auc" || metric == "pr_auc" || metric == "group_auc") {
    return true;
  }
  if (absl::EndsWith(metric, "accuracy")) return true;
  for (const absl::string_view kind : {"precision", "recall", "f1", "ndcg"}) {
    if (metric == kind ||
        absl::StartsWith(metric, absl::StrCat(kind, "_at_"))) {
      return true;
    }
  }
  return false;
}

// The evaluator's metrics that are no results of the model's.
constexpr char kLoss[] = "parasol_evaluator_loss";
constexpr char kGlobalStep[] = "parasol_evaluator_global_step";
constexpr char kEvaluations[] = "parasol_evaluator_evaluations_total";
constexpr char kCorrupt[] = "parasol_evaluator_corrupt_checkpoints_total";
constexpr char kDuration[] = "parasol_evaluator_evaluation_duration_seconds";

// Returns the name of the metric's gauge: "ctr/recall_at_0.9" is
// "parasol_evaluator_ctr_recall_at_0_9_ratio".
std::string PlainGaugeOf(const std::string& metric) {
  std::string name = metric;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !absl::ascii_isalnum(static_cast<unsigned char>(c));
      },
      '_');
  name.erase(name.find_last_not_of('_') + 1);
  return absl::StrCat("parasol_evaluator_", name,
                      IsShare(metric) ? "_ratio" : "");
}

}  // namespace

EvaluatorMetrics::EvaluatorMetrics(MetricsRegistry& registry)
    : loss(registry.AddGauge(
          kLoss,
          "Mean loss of the last evaluated checkpoint on the eval examples.")),
      global_step(registry.AddGauge(kGlobalStep,
                                    "Step of the last evaluated checkpoint.")),
      evaluations_total(
          registry.AddCounter(kEvaluations, "Evaluated checkpoints.")),
      corrupt_checkpoints_total(registry.AddCounter(
          kCorrupt,
          "Checkpoints that were passed over because they are damaged.")),
      evaluation_duration_seconds(registry.AddHistogram(
          kDuration, "From opening a checkpoint to its result.",
          LatencyBounds())),
      registry_(registry),
      taken_({kLoss, kGlobalStep, kEvaluations, kCorrupt, kDuration}) {
  for (const char* const of_histogram : {"_bucket", "_count", "_sum"}) {
    taken_.insert(absl::StrCat(kDuration, of_histogram));
  }
}

const std::string& EvaluatorMetrics::GaugeOf(const std::string& result) {
  std::string& gauge = gauges_[result];
  if (!gauge.empty()) return gauge;
  const std::string plain = PlainGaugeOf(result);
  gauge = plain;
  for (int i = 2; !taken_.insert(gauge).second; ++i) {
    gauge = absl::StrCat(plain, "_", i);
  }
  return gauge;
}

void EvaluatorMetrics::SetResults(const MetricResults& results) {
  for (const auto& [name, value] : results) {
    registry_
        .AddGauge(GaugeOf(name),
                  absl::StrCat("The job's metric ", name,
                               " of the last evaluated checkpoint on the eval "
                               "examples; NaN where it is undefined."))
        .Set(value);
  }
}

}  // namespace parasol
