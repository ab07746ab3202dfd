#include "worker/worker_metrics.h"

namespace parasol {

WorkerMetrics::WorkerMetrics(MetricsRegistry& registry)
    : steps(registry.AddCounter("parasol_worker_steps_total",
                                "Steps whose gradients all shards have "
                                "acknowledged.")),
      examples(registry.AddCounter("parasol_worker_examples_total",
                                   "Training examples computed.")),
      stale_gradients(registry.AddCounter(
          "parasol_worker_stale_gradients_total",
          "Gradients whose step was complete without them (synchronous "
          "training with backups).")),
      reused_values(registry.AddCounter(
          "parasol_worker_reused_values_total",
          "Steps computed with the values of the step before them, because "
          "their own had not come yet (asynchronous training).")),
      corrupt_records(registry.AddCounter(
          "parasol_worker_corrupt_records_total",
          "Training records that could not be decoded and were left out.")),
      cached_rows(registry.AddCounter(
          "parasol_worker_cached_rows_total",
          "Rows of cached tables that batches have read (a worker without a "
          "cluster on a CUDA device).")),
      cache_misses(registry.AddCounter(
          "parasol_worker_cache_misses_total",
          "Those of parasol_worker_cached_rows_total that were in host memory "
          "and were copied to the device.")),
      loss(registry.AddGauge("parasol_worker_loss",
                             "Mean loss of the newest batch.")),
      step_seconds(registry.AddHistogram(
          "parasol_worker_step_duration_seconds",
          "From taking a step to having its successor's values.",
          LatencyBounds())),
      wait_ratio(registry.AddGauge(
          "parasol_worker_wait_ratio",
          "Share of the time between the last two reports to the chief in "
          "which the training loop waited for other tasks.")),
      compute_seconds(
          registry.AddCounter("parasol_worker_compute_seconds_total",
                              "Time in forward and backward passes.")),
      wait_input_seconds(
          registry.AddCounter("parasol_worker_wait_input_seconds_total",
                              "Time without a batch to compute on.")),
      wait_steps_seconds(
          registry.AddCounter("parasol_worker_wait_steps_seconds_total",
                              "Time without a step granted by the chief.")),
      wait_pull_seconds(
          registry.AddCounter("parasol_worker_wait_pull_seconds_total",
                              "Time without the values to compute with.")),
      wait_push_seconds(registry.AddCounter(
          "parasol_worker_wait_push_seconds_total",
          "Time without the acknowledgement of earlier gradients.")),
      stood_still_seconds(registry.AddCounter(
          "parasol_worker_stood_still_seconds_total",
          "The part of the waits for values and acknowledgements in which the "
          "process did not run: stopped, or without a processor.")) {}

}  // namespace parasol
