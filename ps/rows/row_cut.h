#ifndef PARASOL_PS_ROWS_ROW_CUT_H_
#define PARASOL_PS_ROWS_ROW_CUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ps/rows/row_arena.h"
#include "ps/rows/row_block.h"
#include "ps/rows/row_stripe.h"
#include "storage/shard_entry.h"

namespace parasol {

// All rows of a table at one moment: every push is in it wholly or not at all.
// May outlive the table. Holds references, no copies: while it lives, the first
// write to a block (16 KiB of rows) copies that block. With rows spread at
// random that is the whole table's memory once more, and some microseconds a
// row for the first pushes after the cut.
class RowCut {
 public:
  using Piece = RowStripe::Piece;
  using Visit = absl::FunctionRef<absl::Status(const RowBatch& batch)>;

  RowCut(std::string name, int64_t updates, RowLayout layout,
         std::shared_ptr<RowArena> arena, std::vector<Piece> pieces);

  const std::string& name() const { return name_; }
  // Of the table.
  int64_t updates() const { return updates_; }
  size_t rows() const;

  // Every row once, in batches of about 16 KiB; ids ascend within a batch. Lets
  // go of the rows of a batch before the next one: there is nothing left
  // afterwards. A table without rows gives one batch without rows, for its
  // updates. Stops at the first error.
  absl::Status Drain(Visit visit);

 private:
  class PackedRows;

  std::string name_;
  int64_t updates_;
  RowLayout layout_;
  std::shared_ptr<RowArena> arena_;  // outlives the pieces
  std::vector<Piece> pieces_;
};

}  // namespace parasol

#endif  // PARASOL_PS_ROWS_ROW_CUT_H_
