#include "chief/data_metrics.h"

#include "cluster/rpc/proto_duration.h"

namespace parasol {

DataMetrics::DataMetrics(MetricsRegistry& registry)
    : files_total_(
          registry.AddCounter("parasol_chief_data_files_total",
                              "Files of a growing training set that were "
                              "taken.")),
      skipped_files_total_(registry.AddCounter(
          "parasol_chief_data_skipped_files_total",
          "Files of a growing training set that were left out: late, damaged, "
          "or gone.")),
      waiting_records_(registry.AddGauge(
          "parasol_chief_data_waiting_records",
          "Records, about, of files that were taken that are not trained.")),
      waiting_files_(
          registry.AddGauge("parasol_chief_data_waiting_files",
                            "Files that were found and are not taken yet.")),
      newest_age_seconds_(registry.AddGauge(
          "parasol_chief_data_newest_age_seconds",
          "Time since the newest file was taken; 0: none was.")),
      wait_seconds_(registry.AddGauge(
          "parasol_chief_data_wait_seconds",
          "Time for which all records that there are have been trained; 0 "
          "while there are others.")) {}

void DataMetrics::Show(const wire::FollowedData& data) {
  files_total_.Add(static_cast<double>(data.files() - files_));
  files_ = data.files();
  skipped_files_total_.Add(
      static_cast<double>(data.skipped_files() - skipped_files_));
  skipped_files_ = data.skipped_files();
  waiting_records_.Set(static_cast<double>(data.waiting_records()));
  waiting_files_.Set(static_cast<double>(data.waiting_files()));
  newest_age_seconds_.Set(SecondsIn(data.newest_age()));
  wait_seconds_.Set(SecondsIn(data.waited()));
}

}  // namespace parasol
