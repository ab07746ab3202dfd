#include "evaluator/evaluator_metrics.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

// What a gauge's name ends with: the unit, where it has one.
std::string GaugeOf(const std::string& metric) {
  const bool is_share = metric == "accuracy" || metric == "auc";
  return absl::StrCat("parasol_evaluator_", metric, is_share ? "_ratio" : "");
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
