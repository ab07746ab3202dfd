#include "ps/sparse/table_metrics.h"

namespace parasol {

TableMetrics::TableMetrics(MetricsRegistry& registry, const std::string& table)
    : rows_(registry.AddGauge("parasol_ps_table_rows",
                              "Rows of a sparse table on this ps.",
                              {{"table", table}})),
      counted_ids_(registry.AddGauge(
          "parasol_ps_table_counted_ids",
          "Ids of a sparse table that have occurred and have no row.",
          {{"table", table}})),
      dropped_gradients_(registry.AddCounter(
          "parasol_ps_table_dropped_gradients_total",
          "Gradients of ids of a sparse table that had no row.",
          {{"table", table}})),
      evicted_rows_(registry.AddCounter(
          "parasol_ps_table_evicted_rows_total",
          "Rows of a sparse table that have gone again.", {{"table", table}})),
      rows_on_disk_(registry.AddGauge(
          "parasol_ps_table_rows_on_disk",
          "Rows of a sparse table with a tier that are not in memory.",
          {{"table", table}})),
      disk_bytes_(registry.AddGauge(
          "parasol_ps_table_disk_bytes",
          "Bytes of the file of a sparse table's tier.", {{"table", table}})),
      lookups_(registry.AddCounter(
          "parasol_ps_table_lookups_total",
          "Ids of pushes and pulls of a sparse table with a tier.",
          {{"table", table}})),
      disk_reads_(registry.AddCounter(
          "parasol_ps_table_disk_reads_total",
          "Rows of a sparse table that were read from the disk.",
          {{"table", table}})) {}

void TableMetrics::Show(const RowTotals& totals) {
  rows_.Set(static_cast<double>(totals.rows.load(std::memory_order_relaxed)));
  counted_ids_.Set(
      static_cast<double>(totals.counted_ids.load(std::memory_order_relaxed)));
  dropped_gradients_.Show(
      totals.dropped_gradients.load(std::memory_order_relaxed));
  evicted_rows_.Show(totals.evicted_rows.load(std::memory_order_relaxed));
  rows_on_disk_.Set(
      static_cast<double>(totals.rows_on_disk.load(std::memory_order_relaxed)));
  disk_bytes_.Set(
      static_cast<double>(totals.disk_bytes.load(std::memory_order_relaxed)));
  lookups_.Show(totals.lookups.load(std::memory_order_relaxed));
  disk_reads_.Show(totals.disk_reads.load(std::memory_order_relaxed));
}

// Another thread may have shown a later total.
void TableMetrics::Total::Show(int64_t total) {
  int64_t shown = shown_.load(std::memory_order_relaxed);
  while (shown < total) {
    if (!shown_.compare_exchange_weak(shown, total)) continue;
    return counter_.Add(static_cast<double>(total - shown));
  }
}

}  // namespace parasol
