#ifndef PARASOL_PS_SPARSE_TABLE_METRICS_H_
#define PARASOL_PS_SPARSE_TABLE_METRICS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/metrics.h"
#include "cluster/rows/row_bounds.h"

namespace parasol {

// The metrics of one sparse table of a shard. Thread-safe.
class TableMetrics {
 public:
  // `registry` must outlive the metrics.
  TableMetrics(MetricsRegistry& registry, const std::string& table);

  // Shows what the table has and has done since it was loaded.
  void Show(const RowTotals& totals);

 private:
  // A counter that shows a total that only grows.
  class Total {
   public:
    explicit Total(Counter counter) : counter_(counter) {}
    void Show(int64_t total);

   private:
    Counter counter_;
    std::atomic<int64_t> shown_ = 0;
  };

  Gauge rows_;
  Gauge counted_ids_;
  Total dropped_gradients_;
  Total evicted_rows_;
  Gauge rows_on_disk_;
  Gauge disk_bytes_;
  Total lookups_;
  Total disk_reads_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_TABLE_METRICS_H_
