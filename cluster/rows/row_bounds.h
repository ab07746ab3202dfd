#ifndef PARASOL_CLUSTER_ROWS_ROW_BOUNDS_H_
#define PARASOL_CLUSTER_ROWS_ROW_BOUNDS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proto/job.pb.h"

namespace parasol {

// The rules by which ids get rows in a shard's part of a table, and by which
// rows go again. By default each id that is pulled or pushed has a row for
// good.
struct RowBounds {
  // Occurrences with which an id gets its row; 0 and 1: the first push.
  int64_t min_count = 0;
  // Updates of the table after which a row that none of them touches goes, and
  // a count too; 0: never.
  int64_t idle_steps = 0;
  // Most rows of the shard; 0: any number.
  int64_t max_rows = 0;

  // Returns true if ids without a row are counted.
  bool counts() const { return min_count > 1; }
  // Returns true if it is known when a row was touched last.
  bool times() const { return idle_steps > 0 || max_rows > 0; }
  bool any() const { return counts() || times(); }
  // Returns true if tables with these rules keep the same numbers.
  bool HasFormOf(const RowBounds& other) const {
    return counts() == other.counts() && times() == other.times() &&
           (idle_steps > 0) == (other.idle_steps > 0) &&
           (max_rows > 0) == (other.max_rows > 0);
  }

  // Returns the number of the update before which nothing that is still there
  // at update `update` was touched last. Updates are counted from 1 on.
  int64_t OldestAt(int64_t update) const {
    return idle_steps > 0 ? update - idle_steps : INT64_MIN;
  }
};

// Returns the rules of one of `num_shards` shards.
inline RowBounds BoundsOf(const job::Admission& admission,
                          const job::Eviction& eviction, uint32_t num_shards) {
  const int64_t shards = std::max(num_shards, 1u);
  const int64_t rows = eviction.max_rows();
  return {.min_count = admission.min_count(),
          .idle_steps = eviction.idle_steps(),
          .max_rows = rows / shards + (rows % shards > 0 ? 1 : 0)};
}

// Returns the rules of a table that is not divided among shards.
inline RowBounds BoundsOf(const job::SparseTable& table) {
  return BoundsOf(table.admission(), table.eviction(), /*num_shards=*/1);
}

// Numbers of what a table has, and of what its rules have done in this process.
struct RowTotals {
  std::atomic<int64_t> rows = 0;
  // Ids without a row that are counted, and the bytes of all counts.
  std::atomic<int64_t> counted_ids = 0;
  std::atomic<int64_t> count_bytes = 0;
  // Gradients that were dropped: one for each push and id without a row.
  std::atomic<int64_t> dropped_gradients = 0;
  std::atomic<int64_t> evicted_rows = 0;
  // Rows on the disk, the bytes of memory for their places, and of the file.
  std::atomic<int64_t> rows_on_disk = 0;
  std::atomic<int64_t> place_bytes = 0;
  std::atomic<int64_t> disk_bytes = 0;
  // Ids of pushes and pulls, and how many of them needed a read of the disk; in
  // a table with a tier.
  std::atomic<int64_t> lookups = 0;
  std::atomic<int64_t> disk_reads = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_BOUNDS_H_
