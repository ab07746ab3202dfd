#ifndef PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_
#define PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/rows/id_counts.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_block.h"
#include "cluster/rows/row_stripe.h"
#include "cluster/rows/row_tier.h"
#include "storage/shard_entry.h"
#include "storage/tier/row_log.h"

namespace parasol {

// All rows of a table at one moment, or those that have changed since another
// one (RowTable::TakeSnapshot()): each push is in it wholly or not at all.
// May outlive the table. Holds references, no copies: while it lives, the first
// write to a block (16 KiB of rows) copies that block. If pushed rows are
// spread at random, the copies take as much memory as the whole table, and the
// first pushes after the snapshot take some microseconds more per row. Rows
// that are on the disk are read from there, a mebibyte at a time.
class RowSnapshot {
 public:
  using Piece = RowStripe::Piece;
  using Visit = absl::FunctionRef<absl::Status(const RowBatch& batch)>;

  RowSnapshot(std::string name, int64_t updates, RowLayout layout,
              std::shared_ptr<RowArena> arena, RowStripe::Contents contents,
              std::shared_ptr<RowTier> tier = nullptr);

  const std::string& name() const { return name_; }
  // Number of updates that the table has had.
  int64_t updates() const { return updates_; }
  // Number of rows; of changes in a table with a tier, the most that there may
  // be.
  size_t rows() const;

  // Visits every row once, in batches of about 16 KiB; ids ascend within a
  // batch. The rows of a batch are freed before the next batch, so the snapshot
  // is empty afterwards. A snapshot without rows gives one batch without rows,
  // which carries its updates. Stops at the first error.
  //   Unavailable  a row of the table on the disk is lost.
  absl::Status Drain(Visit visit);

  // Number of ids that VisitCounts() visits.
  size_t counted_ids() const;
  // Visits the counts of all ids without a row, in batches of at most
  // kCountsAtOnce. Not at all if there are none.
  static constexpr size_t kCountsAtOnce = 4096;
  absl::Status VisitCounts(
      absl::FunctionRef<absl::Status(const CountBatch& batch)> visit) const;

  // Returns false if changes are missing, for more rows have gone than the
  // table keeps track of (RowMarks): it must not be written.
  bool is_complete() const { return is_complete_; }

  // Ids whose rows have gone since the snapshot to which this one is compared;
  // this one may have a newer row of some. One may be there more than once.
  absl::Span<const uint64_t> removed() const { return removed_; }

 private:
  class PackedRows;

  std::string name_;
  int64_t updates_;
  RowLayout layout_;
  std::shared_ptr<RowArena> arena_;  // must outlive the pieces
  std::vector<Piece> pieces_;
  std::vector<uint64_t> removed_;
  std::vector<std::shared_ptr<const IdCounts>> counts_;
  bool is_complete_;
  std::shared_ptr<RowTier> tier_;  // null: the table has none
  LogSnapshot on_disk_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_
