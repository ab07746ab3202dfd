#ifndef PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_METRICS_H_
#define PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_METRICS_H_

#include "base/metrics.h"

namespace parasol {

// The metrics of one ParameterClient, over all its shards.
struct ParameterClientMetrics {
  explicit ParameterClientMetrics(MetricsRegistry& registry);

  Counter push_bytes;
  Counter pull_bytes;
  Counter resent_requests;
  // Latencies in seconds of the first push, and of the first pull, in each
  // response.
  Histogram push_latency;
  Histogram pull_latency;
  // Number of shards that have not answered for so long that the log names
  // them.
  Gauge shards_waiting;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_METRICS_H_
