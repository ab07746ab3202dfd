#ifndef PARASOL_SERVING_SERVING_METRICS_H_
#define PARASOL_SERVING_SERVING_METRICS_H_

#include "base/metrics.h"

namespace parasol {

// The metrics of a server of predictions.
struct ServingMetrics {
  explicit ServingMetrics(MetricsRegistry& registry);

  Gauge version;          // the step that is served; -1: none yet
  Gauge written;          // Unix time of its checkpoint; 0: none yet
  Gauge queued_examples;  // examples that wait for the model
  Counter loads;          // checkpoints that were loaded
  Counter shared_loads;   // loads that read changes alone
  Counter refused_loads;  // checkpoints that could not be served
  Counter examples;       // examples that went through the model
  Counter batches;        // passes of the model
  Counter overloaded;     // requests refused because too many waited
  Counter expired;        // requests that waited beyond their deadline
  Counter answers;        // answered requests
  Counter client_errors;  // requests with an error of the client
  Counter server_errors;  // requests with an error of the server
  Histogram lag;          // time from a checkpoint to its first answer
  Histogram latency;      // time from the whole request to its answer
};

}  // namespace parasol

#endif  // PARASOL_SERVING_SERVING_METRICS_H_
