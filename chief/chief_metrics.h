#ifndef PARASOL_CHIEF_CHIEF_METRICS_H_
#define PARASOL_CHIEF_CHIEF_METRICS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/metrics.h"
#include "chief/data_metrics.h"
#include "proto/chief.pb.h"

namespace parasol {

// The chief's metrics. ChiefServer updates them, Coordinator never does.
class ChiefMetrics {
 public:
  // `registry` must outlive this object.
  explicit ChiefMetrics(MetricsRegistry& registry);

  // Sets the gauges to the values in `status`.
  void Show(const wire::JobStatus& status);
  // Sets the gauge of what bounds the job to the first of the findings in
  // `status`, if there is one.
  void ShowBound(const wire::JobStatus& status);
  void LeaseExpired(const std::string& role);
  void CheckpointTried(const absl::Status& result, absl::Duration took);
  void LoadTried(const absl::Status& result);

 private:
  // The gauges of a worker's pace.
  struct Pace {
    Gauge is_slow;
    Gauge slowness_ratio;
    Gauge steps_per_second;
  };

  void ShowPace(const wire::TaskStatus& worker);

  MetricsRegistry& registry_;
  std::optional<DataMetrics> data_;    // metrics of a training set that grows
  std::map<std::string, Pace> paces_;  // key: the worker's name
  // Keys: the finding's kind, as its label, and the task, which may be empty.
  std::map<std::pair<std::string, std::string>, Gauge> bounds_;
  std::map<wire::JobPhase, Gauge> phase_;
  std::map<std::string, Gauge> live_tasks_;     // key: role
  std::map<std::string, Gauge> missing_tasks_;  // key: role
  std::map<std::string, Gauge> doubled_tasks_;  // key: role
  std::map<std::string, Counter> expired_leases_total_;
  Gauge global_step_;
  Gauge end_step_;
  Gauge examples_per_second_;
  Gauge loss_;
  Gauge placement_skew_ratio_;
  Gauge evaluated_step_;
  Gauge due_evaluations_;
  Counter doubled_batches_total_;
  int64_t doubled_batches_ = 0;
  Gauge evaluation_wait_seconds_;
  Counter checkpoints_written_total_;
  Counter checkpoints_failed_total_;
  Counter loads_done_total_;
  Counter loads_failed_total_;
  Histogram checkpoint_duration_seconds_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_METRICS_H_
