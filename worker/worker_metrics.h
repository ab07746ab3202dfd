#ifndef PARASOL_WORKER_WORKER_METRICS_H_
#define PARASOL_WORKER_WORKER_METRICS_H_

#include "absl/time/time.h"
#include "base/metrics.h"

namespace parasol {

struct WorkerMetrics {
  explicit WorkerMetrics(MetricsRegistry& registry);

  Counter steps;
  Counter examples;
  Counter stale_gradients;
  Counter reused_values;
  Counter corrupt_records;
  Counter cached_rows;
  Counter cache_misses;
  Gauge loss;
  Histogram step_seconds;
  Gauge wait_ratio;
  // Seconds that the training loop spends in each activity. compute_seconds
  // over the sum of all five is the loop's efficiency.
  Counter compute_seconds;
  Counter wait_input_seconds;
  Counter wait_steps_seconds;
  Counter wait_pull_seconds;
  Counter wait_push_seconds;
  // The part of these waits in which the process did not run.
  Counter stood_still_seconds;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_METRICS_H_
