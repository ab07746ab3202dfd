#ifndef PARASOL_CHIEF_DATA_METRICS_H_
#define PARASOL_CHIEF_DATA_METRICS_H_

#include <cstdint>

#include "base/metrics.h"
#include "proto/chief.pb.h"

namespace parasol {

// The metrics of a training set that grows. For one thread.
class DataMetrics {
 public:
  explicit DataMetrics(MetricsRegistry& registry);

  void Show(const wire::FollowedData& data);

 private:
  Counter files_total_;
  Counter skipped_files_total_;
  Gauge waiting_records_;
  Gauge waiting_files_;
  Gauge newest_age_seconds_;
  Gauge wait_seconds_;
  int64_t files_ = 0;
  int64_t skipped_files_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_DATA_METRICS_H_
