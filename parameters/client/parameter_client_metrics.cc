#include "parameters/client/parameter_client_metrics.h"

namespace parasol {

ParameterClientMetrics::ParameterClientMetrics(MetricsRegistry& registry)
    : push_bytes(registry.AddCounter("parasol_worker_push_bytes_total",
                                     "Gradient bytes acknowledged by ps.")),
      pull_bytes(registry.AddCounter("parasol_worker_pull_bytes_total",
                                     "Value bytes received from ps.")),
      resent_requests(registry.AddCounter(
          "parasol_worker_resent_requests_total",
          "Requests to ps sent again after a stream ended.")),
      push_latency(registry.AddHistogram(
          "parasol_worker_exchange_latency_seconds",
          "From sending a request to a ps until its answer has come.",
          LatencyBounds(), {{"op", "push"}})),
      pull_latency(registry.AddHistogram(
          "parasol_worker_exchange_latency_seconds",
          "From sending a request to a ps until its answer has come.",
          LatencyBounds(), {{"op", "pull"}})),
      shards_waiting(
          registry.AddGauge("parasol_worker_shards_waiting",
                            "Ps that have not answered for more than 10 s.")) {}

}  // namespace parasol
