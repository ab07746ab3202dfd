#ifndef PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_
#define PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_block.h"
#include "cluster/rows/row_stripe.h"
#include "storage/shard_entry.h"

namespace parasol {

// All rows of a table at one moment, or those that have changed since another
// one (RowTable::TakeSnapshot()): each push is in it wholly or not at all.
// May outlive the table. Holds references, no copies: while it lives, the first
// write to a block (16 KiB of rows) copies that block. If pushed rows are
// spread at random, the copies take as much memory as the whole table, and the
// first pushes after the snapshot take some microseconds more per row.
class RowSnapshot {
 public:
  using Piece = RowStripe::Piece;
  using Visit = absl::FunctionRef<absl::Status(const RowBatch& batch)>;

  RowSnapshot(std::string name, int64_t updates, RowLayout layout,
              std::shared_ptr<RowArena> arena, std::vector<Piece> pieces);

  const std::string& name() const { return name_; }
  // Number of updates that the table has had.
  int64_t updates() const { return updates_; }
  size_t rows() const;

  // Visits every row once, in batches of about 16 KiB; ids ascend within a
  // batch. The rows of a batch are freed before the next batch, so the snapshot
  // is empty afterwards. A snapshot without rows gives one batch without rows,
  // which carries its updates. Stops at the first error.
  absl::Status Drain(Visit visit);

 private:
  class PackedRows;

  std::string name_;
  int64_t updates_;
  RowLayout layout_;
  std::shared_ptr<RowArena> arena_;  // must outlive the pieces
  std::vector<Piece> pieces_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_SNAPSHOT_H_
