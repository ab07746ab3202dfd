#include "cluster/rows/row_snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace parasol {

// Rows of some blocks in ascending order of their ids. Kept for its memory.
class RowSnapshot::PackedRows {
 public:
  void Add(Piece piece, const RowLayout& layout) {
    const uint64_t* const ids = piece.block.ids(layout);
    for (uint32_t i = 0; i < piece.rows; ++i) {
      if (piece.Has(i)) rows_.push_back({ids[i], piece.block.row(i, layout)});
    }
    blocks_.push_back(std::move(piece.block));
  }
  size_t size() const { return rows_.size(); }

  // Lets go of the blocks. The batch lives until the next call.
  RowBatch Pack(int64_t updates, const RowLayout& layout) {
    std::sort(rows_.begin(), rows_.end(),
              [](const Row& a, const Row& b) { return a.id < b.id; });
    ids_.resize(rows_.size());
    values_.resize(rows_.size() * layout.floats);
    for (size_t i = 0; i < rows_.size(); ++i) {
      ids_[i] = rows_[i].id;
      std::memcpy(&values_[i * layout.floats], rows_[i].values,
                  layout.floats * sizeof(float));
    }
    rows_.clear();
    blocks_.clear();
    return {.updates = updates, .ids = ids_, .rows = values_};
  }

 private:
  struct Row {
    uint64_t id;
    const float* values;
  };

  std::vector<RowBlock> blocks_;  // which have the rows
  std::vector<Row> rows_;
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
};

RowSnapshot::RowSnapshot(std::string name, int64_t updates, RowLayout layout,
                         std::shared_ptr<RowArena> arena,
                         std::vector<Piece> pieces)
    : name_(std::move(name)),
      updates_(updates),
      layout_(layout),
      arena_(std::move(arena)),
      pieces_(std::move(pieces)) {}

size_t RowSnapshot::rows() const {
  size_t rows = 0;
  for (const Piece& piece : pieces_) rows += piece.count();
  return rows;
}

absl::Status RowSnapshot::Drain(Visit visit) {
  if (pieces_.empty()) return visit({.updates = updates_});
  PackedRows packed;
  for (Piece& piece : std::exchange(pieces_, {})) {
    const bool has_all = piece.changed == nullptr;
    packed.Add(std::move(piece), layout_);
    // Blocks of which few rows count share a batch.
    if (!has_all && packed.size() < layout_.rows_per_block()) continue;
    RETURN_IF_ERROR(visit(packed.Pack(updates_, layout_)));
  }
  if (packed.size() == 0) return absl::OkStatus();
  return visit(packed.Pack(updates_, layout_));
}

}  // namespace parasol
