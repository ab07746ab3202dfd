#include "ps/shard/ps_metrics.h"

#include <string>

namespace parasol {
namespace {

Counter RejectedRequests(MetricsRegistry& registry, const std::string& reason) {
  return registry.AddCounter("parasol_ps_rejected_requests_total",
                             "Pushes and pulls answered with an error.",
                             {{"reason", reason}});
}

}  // namespace

PsMetrics::PsMetrics(MetricsRegistry& registry)
    : pushes_total(registry.AddCounter("parasol_ps_pushes_total",
                                       "Push messages applied.")),
      duplicate_pushes_total(registry.AddCounter(
          "parasol_ps_duplicate_pushes_total",
          "Push messages that had been applied before, and were not again.")),
      stale_pushes_total(registry.AddCounter(
          "parasol_ps_stale_pushes_total",
          "Synchronous push messages that came too late for their step.")),
      push_bytes_total(registry.AddCounter(
          "parasol_ps_push_bytes_total", "Gradient bytes of applied pushes.")),
      replayed_pushes_total(registry.AddCounter(
          "parasol_ps_replayed_pushes_total",
          "Push messages that were read back from a journal.")),
      lost_pushes_total(registry.AddCounter(
          "parasol_ps_lost_pushes_total",
          "Acknowledged pushes that were not in what the ps was loaded from.")),
      lost_journals_total(registry.AddCounter(
          "parasol_ps_lost_journals_total",
          "Loads behind whose checkpoint acknowledged pushes were lost, though "
          "there was a journal: it was damaged or gone.")),
      taken_standbys_total(registry.AddCounter(
          "parasol_ps_taken_standbys_total",
          "Loads whose shard was taken from its standby on another ps.")),
      lost_standbys_total(registry.AddCounter(
          "parasol_ps_lost_standbys_total",
          "Loads behind whose checkpoint acknowledged pushes were lost, though "
          "the job replicates: the standby was gone, too.")),
      standby_in_sync(registry.AddGauge(
          "parasol_ps_standby_in_sync",
          "1 while the standby of this shard has all acknowledged pushes.")),
      standby_records_behind(registry.AddGauge(
          "parasol_ps_standby_records_behind",
          "Pushes that the standby of this shard does not hold yet.")),
      pulls_total(registry.AddCounter("parasol_ps_pulls_total",
                                      "Pull messages answered.")),
      pull_bytes_total(registry.AddCounter("parasol_ps_pull_bytes_total",
                                           "Value bytes of answered pulls.")),
      malformed_requests_total(registry.AddCounter(
          "parasol_ps_malformed_requests_total",
          "Messages that were no request and ended their stream.")),
      snapshots_total(registry.AddCounter("parasol_ps_snapshots_total",
                                          "Shard files written.")),
      failed_snapshots_total(
          registry.AddCounter("parasol_ps_failed_snapshots_total",
                              "Shard files that could not be written.")),
      streams(registry.AddGauge("parasol_ps_streams",
                                "Exchange streams that are open.")),
      lanes(registry.AddGauge(
          "parasol_ps_payload_lanes",
          "Streams of workers, and of shards that have their standbys here, "
          "whose messages travel on a TCP connection of their own.")),
      shared_memory_streams(registry.AddGauge(
          "parasol_ps_shared_memory_streams",
          "Exchange streams with workers of the same machine: their large "
          "payloads don't go through the socket.")),
      shared_memory_push_bytes(registry.AddCounter(
          "parasol_ps_shared_memory_bytes_total",
          "Of pushes and pulls, what did not go through a socket.",
          {{"op", "push"}})),
      shared_memory_pull_bytes(registry.AddCounter(
          "parasol_ps_shared_memory_bytes_total",
          "Of pushes and pulls, what did not go through a socket.",
          {{"op", "pull"}})),
      buffered_bytes(registry.AddGauge(
          "parasol_ps_buffered_bytes",
          "Requests being served and responses not sent yet.")),
      value_bytes(registry.AddGauge("parasol_ps_value_bytes",
                                    "Size of the variables held.")),
      slot_bytes(registry.AddGauge("parasol_ps_slot_bytes",
                                   "Size of their optimizer slots.")),
      row_bytes(registry.AddGauge(
          "parasol_ps_row_bytes",
          "Size of the sparse tables' rows, with slots and indexes.")),
      apply_duration_seconds(registry.AddHistogram(
          "parasol_ps_apply_duration_seconds",
          "Time to apply one push message.", LatencyBounds())),
      snapshot_duration_seconds(registry.AddHistogram(
          "parasol_ps_snapshot_duration_seconds",
          "Time to cut and write one shard file.", LatencyBounds())),
      load_duration_seconds(registry.AddHistogram(
          "parasol_ps_load_duration_seconds",
          "Time to initialise or restore the variables.", LatencyBounds())),
      registry_(registry),
      otherwise_rejected_requests_total_(RejectedRequests(registry, "OTHER")) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument,
        absl::StatusCode::kFailedPrecondition, absl::StatusCode::kOutOfRange,
        absl::StatusCode::kUnavailable}) {
    rejected_requests_total_.emplace(
        code, RejectedRequests(registry, absl::StatusCodeToString(code)));
  }
}

void PsMetrics::CountRejected(absl::StatusCode code) {
  const auto counter = rejected_requests_total_.find(code);
  if (counter != rejected_requests_total_.end()) {
    counter->second.Add();
  } else {
    otherwise_rejected_requests_total_.Add();
  }
}

}  // namespace parasol
