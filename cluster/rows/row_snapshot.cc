#include "cluster/rows/row_snapshot.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/status_macros.h"

namespace parasol {

// The rows of a block in ascending order of their ids. Kept for its memory.
class RowSnapshot::PackedRows {
 public:
  void Assign(const Piece& piece, const RowLayout& layout) {
    const uint64_t* const ids = piece.block.ids(layout);
    order_.resize(piece.rows);
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(),
              [ids](uint32_t a, uint32_t b) { return ids[a] < ids[b]; });
    ids_.resize(piece.rows);
    values_.resize(piece.rows * layout.floats);
    for (size_t i = 0; i < order_.size(); ++i) {
      ids_[i] = ids[order_[i]];
      std::memcpy(&values_[i * layout.floats],
                  piece.block.row(order_[i], layout),
                  layout.floats * sizeof(float));
    }
  }

  RowBatch batch(int64_t updates) const {
    return {.updates = updates, .ids = ids_, .rows = values_};
  }

 private:
  std::vector<uint32_t> order_;
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
  for (const Piece& piece : pieces_) rows += piece.rows;
  return rows;
}

absl::Status RowSnapshot::Drain(Visit visit) {
  if (pieces_.empty()) return visit({.updates = updates_});
  PackedRows packed;
  for (Piece& piece : std::exchange(pieces_, {})) {
    packed.Assign(piece, layout_);
    piece.block = RowBlock();
    RETURN_IF_ERROR(visit(packed.batch(updates_)));
  }
  return absl::OkStatus();
}

}  // namespace parasol
