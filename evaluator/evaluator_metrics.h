#ifndef PARASOL_EVALUATOR_EVALUATOR_METRICS_H_
#define PARASOL_EVALUATOR_EVALUATOR_METRICS_H_

#include "base/metrics.h"
#include "ml/metric/metric_results.h"

namespace parasol {

// What Prometheus learns of an evaluator.
class EvaluatorMetrics {
 public:
  // `registry` outlives it.
  explicit EvaluatorMetrics(MetricsRegistry& registry);

  // Of the last evaluated checkpoint: each metric has a gauge of its own,
  // parasol_evaluator_accuracy_ratio, …_auc_ratio, …_root_mean_squared_error,
  // which is there from its first value on.
  void SetResults(const MetricResults& results);

  Gauge loss;
  Gauge global_step;
  Counter evaluations_total;
  Counter corrupt_checkpoints_total;
  Histogram evaluation_duration_seconds;

 private:
  MetricsRegistry& registry_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATOR_METRICS_H_
