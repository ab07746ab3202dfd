#ifndef PARASOL_PS_SHARD_PS_METRICS_H_
#define PARASOL_PS_SHARD_PS_METRICS_H_

#include <map>

#include "absl/status/status.h"
#include "base/metrics.h"

namespace parasol {

struct PsMetrics {
  explicit PsMetrics(MetricsRegistry& registry);

  // Returns the registry, for metrics that have a label.
  MetricsRegistry& registry() const { return registry_; }

  // Counts a request that was answered with an error of this code.
  void CountRejected(absl::StatusCode code);

  Counter pushes_total;
  Counter duplicate_pushes_total;
  Counter stale_pushes_total;
  Counter push_bytes_total;
  Counter replayed_pushes_total;
  Counter lost_pushes_total;
  Counter lost_journals_total;
  Counter taken_standbys_total;
  Counter lost_standbys_total;
  Gauge standby_in_sync;
  Gauge standby_records_behind;
  Counter pulls_total;
  Counter pull_bytes_total;
  Counter malformed_requests_total;
  Counter snapshots_total;
  Counter failed_snapshots_total;
  Gauge streams;
  Gauge lanes;
  Gauge shared_memory_streams;
  Counter shared_memory_push_bytes;
  Counter shared_memory_pull_bytes;
  Gauge buffered_bytes;
  Gauge value_bytes;
  Gauge slot_bytes;
  Gauge row_bytes;
  Histogram apply_duration_seconds;
  Histogram snapshot_duration_seconds;
  Histogram load_duration_seconds;

 private:
  MetricsRegistry& registry_;
  // Counters whose label "reason" is the status code; codes that have none
  // count as "OTHER".
  std::map<absl::StatusCode, Counter> rejected_requests_total_;
  Counter otherwise_rejected_requests_total_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PS_METRICS_H_
