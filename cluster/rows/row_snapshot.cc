#include "cluster/rows/row_snapshot.h"

#include <algorithm>
#include <utility>

#include "base/row_hash.h"
#include "base/status_macros.h"

namespace parasol {

// Rows of some blocks in ascending order of their ids. Kept for its memory.
class RowSnapshot::PackedRows {
 public:
  void Add(Piece piece, const RowLayout& layout) {
    const uint64_t* const ids = piece.block.ids(layout);
    const int64_t* const touched =
        layout.timed ? piece.block.touched(layout) : nullptr;
    for (uint32_t i = 0; i < piece.rows; ++i) {
      if (!piece.Has(i)) continue;
      rows_.push_back({ids[i], piece.block.row(i, layout),
                       touched == nullptr ? 0 : touched[i]});
    }
    blocks_.push_back(std::move(piece.block));
  }
  // Copies the row.
  void Add(const LoggedRow& row, const RowLayout& layout) {
    auto& words =
        copies_.emplace_back(row.elements, row.elements + layout.words);
    rows_.push_back({row.id, words.data(), row.touched});
  }
  size_t size() const { return rows_.size(); }

  // Lets go of the blocks. The batch lives until the next call.
  RowBatch Pack(int64_t updates, const RowLayout& layout) {
    std::sort(rows_.begin(), rows_.end(),
              [](const Row& a, const Row& b) { return a.id < b.id; });
    ids_.resize(rows_.size());
    values_.resize(rows_.size() * layout.floats);
    touched_.resize(layout.timed ? rows_.size() : 0);
    for (size_t i = 0; i < rows_.size(); ++i) {
      ids_[i] = rows_[i].id;
      layout.Read(rows_[i].words, &values_[i * layout.floats]);
      if (layout.timed) touched_[i] = rows_[i].touched;
    }
    rows_.clear();
    blocks_.clear();
    copies_.clear();
    return {
        .updates = updates, .ids = ids_, .rows = values_, .touched = touched_};
  }

 private:
  struct Row {
    uint64_t id;
    const float* words;
    int64_t touched;
  };

  std::vector<RowBlock> blocks_;  // which have the rows
  std::vector<std::vector<float>> copies_;
  std::vector<Row> rows_;
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
  std::vector<int64_t> touched_;
};

RowSnapshot::RowSnapshot(std::string name, int64_t updates, RowLayout layout,
                         std::shared_ptr<RowArena> arena,
                         RowStripe::Contents contents,
                         std::shared_ptr<RowTier> tier)
    : name_(std::move(name)),
      updates_(updates),
      layout_(layout),
      arena_(std::move(arena)),
      pieces_(std::move(contents.pieces)),
      removed_(std::move(contents.removed)),
      counts_(std::move(contents.counts)),
      is_complete_(contents.is_complete),
      tier_(std::move(tier)),
      on_disk_(std::move(contents.on_disk)) {}

size_t RowSnapshot::rows() const {
  size_t rows = on_disk_.rows();
  for (const Piece& piece : pieces_) rows += piece.count();
  return rows;
}

absl::Status RowSnapshot::Drain(Visit visit) {
  PackedRows packed;
  bool has_visited = false;
  const auto visit_packed = [&] {
    has_visited = true;
    return visit(packed.Pack(updates_, layout_));
  };
  for (Piece& piece : std::exchange(pieces_, {})) {
    const bool has_all = piece.changed == nullptr;
    packed.Add(std::move(piece), layout_);
    // Blocks of which few rows count share a batch.
    if (!has_all && packed.size() < layout_.rows_per_block()) continue;
    RETURN_IF_ERROR(visit_packed());
  }
  if (tier_ != nullptr) {
    // What an update that has failed has left may be in memory.
    RETURN_IF_ERROR(tier_->status());
    absl::Status visited;
    const absl::Status read = on_disk_.Drain([&](const LoggedRow& row) {
      packed.Add(row, layout_);
      if (packed.size() >= layout_.rows_per_block()) visited = visit_packed();
      return visited;
    });
    RETURN_IF_ERROR(visited);
    if (!read.ok()) return tier_->Fail(read);
  }
  // Once at least: the batch has the updates.
  if (packed.size() == 0 && has_visited) return absl::OkStatus();
  return visit_packed();
}

size_t RowSnapshot::counted_ids() const {
  size_t ids = 0;
  for (const auto& of_stripe : counts_) {
    of_stripe->ForEach(updates_, [&ids](const IdCounts::Entry&) { ++ids; });
  }
  return ids;
}

absl::Status RowSnapshot::VisitCounts(
    absl::FunctionRef<absl::Status(const CountBatch& batch)> visit) const {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> counts;
  std::vector<int64_t> touched;
  absl::Status status;
  const auto flush = [&] {
    if (ids.empty() || !status.ok()) return;
    status = visit({.ids = ids, .counts = counts, .touched = touched});
    ids.clear();
    counts.clear();
    touched.clear();
  };
  for (const auto& of_stripe : counts_) {
    of_stripe->ForEach(updates_, [&](const IdCounts::Entry& entry) {
      if (!status.ok()) return;
      ids.push_back(RowIdOf(entry.hash));
      counts.push_back(entry.count);
      if (of_stripe->is_timed()) touched.push_back(entry.touched);
      if (ids.size() == kCountsAtOnce) flush();
    });
  }
  flush();
  return status;
}

}  // namespace parasol
