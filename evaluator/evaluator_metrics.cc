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

// Returns the name of the metric's gauge: "ctr/recall_at_0.9" is
// "parasol_evaluator_ctr_recall_at_0_9_ratio".
std::string GaugeOf(const std::string& metric) {
  std::string name = absl::StrCat("parasol_evaluator_", metric,
                                  IsShare(metric) ? "_ratio" : "");
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !absl::ascii_isalnum(static_cast<unsigned char>(c));
      },
      '_');
  return name;
}

}  // namespace

EvaluatorMetrics::EvaluatorMetrics(MetricsRegistry& registry)
    : loss(registry.AddGauge(
          "parasol_evaluator_loss",
          "Mean loss of the last evaluated checkpoint on the eval examples.")),
      global_step(registry.AddGauge("parasol_evaluator_global_step",
                                    "Step of the last evaluated checkpoint.")),
      evaluations_total(registry.AddCounter(
          "parasol_evaluator_evaluations_total", "Evaluated checkpoints.")),
      corrupt_checkpoints_total(registry.AddCounter(
          "parasol_evaluator_corrupt_checkpoints_total",
          "Checkpoints that were passed over because they are damaged.")),
      evaluation_duration_seconds(registry.AddHistogram(
          "parasol_evaluator_evaluation_duration_seconds",
          "From opening a checkpoint to its result.", LatencyBounds())),
      registry_(registry) {}

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
