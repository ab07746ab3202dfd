#ifndef PARASOL_EVALUATOR_EVALUATOR_METRICS_H_
#define PARASOL_EVALUATOR_EVALUATOR_METRICS_H_

#include <map>
#include <set>
#include <string>

#include "base/metrics.h"
#include "ml/metric/metric_results.h"

namespace parasol {

// The Prometheus metrics of an evaluator.
class EvaluatorMetrics {
 public:
  // `registry` must outlive this object.
  explicit EvaluatorMetrics(MetricsRegistry& registry);

  // Sets the results of the last evaluated checkpoint. Each metric has a gauge
  // of its own, parasol_evaluator_accuracy_ratio, …_auc_ratio,
  // …_root_mean_squared_error, which exists from its first value on. Of two
  // whose names would be equal, as "a/b_c" and "a_b/c", the later one in the
  // order of the results has a number: …_2.
  void SetResults(const MetricResults& results);

  Gauge loss;
  Gauge global_step;
  Counter evaluations_total;
  Counter corrupt_checkpoints_total;
  Histogram evaluation_duration_seconds;

 private:
  const std::string& GaugeOf(const std::string& result);

  MetricsRegistry& registry_;
  std::map<std::string, std::string> gauges_;  // names, by result
  std::set<std::string> taken_;                // names
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATOR_METRICS_H_
