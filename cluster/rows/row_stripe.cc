#include "cluster/rows/row_stripe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

// Rows that are worked on together: found, while their memory is on its way to
// the cache, then read or written.
constexpr size_t kGroup = 128;

// How many index lines are requested ahead: about as many as a core can have
// under way.
constexpr size_t kAhead = 16;

// Rows of several lines are too many for the first cache: the rows of a group
// would drop each other.
void PrefetchRow(const float* row, size_t bytes) {
  if (bytes <= 64) return __builtin_prefetch(row);
  for (size_t offset = 0; offset < bytes; offset += 64) {
    __builtin_prefetch(reinterpret_cast<const std::byte*>(row) + offset,
                       /*rw=*/0, /*locality=*/2);
  }
}

// A block is shared with an increment if this part of its rows has changed: the
// next write to it copies all of it, while pushes go on. Of a block with fewer
// changes the rows are copied at once.
constexpr uint32_t kSharedShare = 8;

// Blocks of copies of rows, appended to pieces.
class PackedBlocks {
 public:
  PackedBlocks(RowArena& arena, const RowLayout& layout,
               std::vector<RowStripe::Piece>& pieces)
      : arena_(arena), layout_(layout), pieces_(pieces) {}

  // Copies the rows that count.
  void Add(const RowStripe::Piece& piece) {
    const RowSet& changed = *piece.changed;
    for (uint32_t row = 0; row < piece.rows; ++row) {
      // A word of 64 rows at a time, where none has changed.
      const uint32_t number = piece.first + row;
      if (number % 64 == 0 && number / 64 < changed.size() &&
          changed[number / 64] == 0) {
        row += 63;
      } else if (piece.Has(row)) {
        AddRow(piece.block, row);
      }
    }
  }

 private:
  void AddRow(const RowBlock& block, uint32_t row) {
    if (last_ == kNone || pieces_[last_].rows == layout_.rows_per_block()) {
      last_ = pieces_.size();
      pieces_.push_back({RowBlock::Allocate(arena_, layout_), 0});
    }
    RowStripe::Piece& packed = pieces_[last_];
    std::memcpy(packed.block.row(packed.rows, layout_), block.row(row, layout_),
                layout_.floats * sizeof(float));
    packed.block.ids(layout_)[packed.rows] = block.ids(layout_)[row];
    ++packed.rows;
  }

  static constexpr size_t kNone = SIZE_MAX;
  RowArena& arena_;
  const RowLayout& layout_;
  std::vector<RowStripe::Piece>& pieces_;
  size_t last_ = kNone;  // the block that has room
};

// Copies the values of `rows`, one for each id of `run`, to their positions in
// `out`.
void CopyValues(const StripedIds::Run& run, size_t width,
                const float* const* rows, float* out) {
  for (size_t i = 0; i < run.size(); ++i) {
    std::memcpy(out + run.positions[i] * width, rows[i], width * sizeof(float));
  }
}

}  // namespace

uint32_t RowStripe::Piece::count() const {
  if (changed == nullptr) return rows;
  return CountIn(*changed, first, rows);
}

void RowStripe::UseRules(std::shared_ptr<const RowRules> rules) {
  absl::MutexLock lock(&mu_);
  rules_ = std::move(rules);
}

float* RowStripe::Row(uint32_t number) const {
  const RowLayout& layout = rules_->layout;
  return blocks_[number >> layout.block_shift].row(
      number & (layout.rows_per_block() - 1), layout);
}

float* RowStripe::WritableRow(uint32_t number) {
  const size_t block = number >> rules_->layout.block_shift;
  if (shared_[block]) MakeUnique(block);
  if (marks_.is_on()) marks_.Mark(number);
  return Row(number);
}

void RowStripe::MakeUnique(size_t block) {
  if (!blocks_[block].IsUnique()) {
    blocks_[block] = blocks_[block].Copy(rules_->layout);
  }
  shared_[block] = false;
}

uint32_t RowStripe::MakeRow(uint64_t hash, uint64_t id) {
  const uint32_t number = AddRow(hash, id);
  float* const row = Row(number);
  rules_->initializer.Fill(id, row);
  const size_t width = rules_->layout.width;
  for (size_t slot = 0; (1 + slot) * width < rules_->layout.floats; ++slot) {
    std::fill_n(row + (1 + slot) * width, width,
                rules_->optimizer->InitialSlotValue(slot));
  }
  return number;
}

uint32_t RowStripe::AddRow(uint64_t hash, uint64_t id) {
  const RowLayout& layout = rules_->layout;
  const size_t number = index_.size();
  CHECK_LT(number, RowIndex::kNone) << "rows of one stripe";
  const size_t block = number >> layout.block_shift;
  if (block == blocks_.size()) {
    blocks_.push_back(RowBlock::Allocate(arena_, layout));
    shared_.push_back(false);
    rules_->memory->Take(layout.rows_per_block() *
                         RowRules::BytesPerRow(layout));
  } else if (shared_[block]) {
    MakeUnique(block);
  }
  blocks_[block].ids(layout)[number & (layout.rows_per_block() - 1)] = id;
  if (marks_.is_on()) marks_.Mark(number);
  index_.Insert(hash, number);
  size_.store(number + 1, std::memory_order_relaxed);
  return number;
}

template <RowStripe::Access kAccess>
void RowStripe::Locate(const StripedIds::Run& run, const std::byte* ids,
                       float** rows) {
  // A row that is missing goes to the last block. Were the block copied only
  // then, rows of it that have been located would lie in the block of a
  // snapshot, which may end.
  if (!blocks_.empty() && shared_.back()) MakeUnique(blocks_.size() - 1);
  // Copies, which no store can change.
  const RowLayout layout = rules_->layout;
  const size_t in_block = layout.rows_per_block() - 1;
  const size_t bytes =
      (kAccess == Access::kWrite ? layout.floats : layout.width) *
      sizeof(float);
  const size_t count = run.size();
  const uint64_t* const hashes = run.hashes.data();
  const bool is_marked = kAccess == Access::kWrite && marks_.is_on();
  for (size_t i = 0; i < std::min(kAhead, count); ++i) {
    index_.Prefetch(hashes[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.Prefetch(hashes[i + kAhead]);
    uint32_t number = index_.Find(hashes[i]);
    if (number == RowIndex::kNone) {
      number = MakeRow(hashes[i], LoadId(ids, run.positions[i]));
    }
    const size_t block = number >> layout.block_shift;
    if (kAccess == Access::kWrite && shared_[block]) MakeUnique(block);
    if (is_marked) marks_.Mark(number);
    rows[i] = blocks_[block].row(number & in_block, layout);
    PrefetchRow(rows[i], bytes);
  }
}

void RowStripe::Pull(const StripedIds::Run& run, const std::byte* ids,
                     float* out) {
  std::array<float*, kGroup> rows;
  absl::MutexLock lock(&mu_);
  const size_t width = rules_->layout.width;
  for (size_t first = 0; first < run.size(); first += kGroup) {
    const StripedIds::Run group = run.subrun(first, kGroup);
    Locate<Access::kRead>(group, ids, rows.data());
    CopyValues(group, width, rows.data(), out);
  }
}

void RowStripe::Push(int64_t iterations, const StripedIds::Run& run,
                     const std::byte* ids,
                     absl::Span<const std::byte* const> gradients, float* out) {
  std::array<float*, kGroup> rows;
  absl::MutexLock lock(&mu_);
  const size_t width = rules_->layout.width;
  for (size_t first = 0; first < run.size(); first += kGroup) {
    const StripedIds::Run group = run.subrun(first, kGroup);
    Locate<Access::kWrite>(group, ids, rows.data());
    rules_->optimizer->ApplyRows(iterations,
                                 {.count = group.size(),
                                  .width = width,
                                  .gradient_of = gradients.data() + first,
                                  .rows = rows.data()});
    if (out != nullptr) CopyValues(group, width, rows.data(), out);
  }
  if (rules_->optimizer->other_rows() != Optimizer::OtherRows::kUntouched) {
    UpdateOtherRows(iterations, run);
  }
}

void RowStripe::UpdateOtherRows(int64_t iterations,
                                const StripedIds::Run& touched) {
  std::vector<bool> is_touched(index_.size());
  for (const uint64_t hash : touched.hashes) {
    is_touched[index_.Find(hash)] = true;
  }
  std::array<float*, kGroup> rows;
  for (size_t number = 0; number < is_touched.size();) {
    size_t count = 0;
    for (; count < kGroup && number < is_touched.size(); ++number) {
      if (!is_touched[number]) rows[count++] = WritableRow(number);
    }
    rules_->optimizer->ApplyOtherRows(
        iterations,
        {.count = count, .width = rules_->layout.width, .rows = rows.data()});
  }
}

absl::Status RowStripe::Insert(const StripedIds::Run& run, const std::byte* ids,
                               const float* rows) {
  absl::MutexLock lock(&mu_);
  const size_t floats = rules_->layout.floats;
  for (size_t i = 0; i < run.size(); ++i) {
    const uint64_t id = LoadId(ids, run.positions[i]);
    if (index_.Find(run.hashes[i]) != RowIndex::kNone) {
      return absl::AlreadyExistsError(absl::StrCat("row ", id));
    }
    const uint32_t number = AddRow(run.hashes[i], id);
    std::memcpy(Row(number), rows + run.positions[i] * floats,
                floats * sizeof(float));
  }
  return absl::OkStatus();
}

size_t RowStripe::CountMissing(const StripedIds::Run& run) const {
  absl::MutexLock lock(&mu_);
  size_t missing = 0;
  for (const uint64_t hash : run.hashes) {
    if (index_.Find(hash) == RowIndex::kNone) ++missing;
  }
  return missing;
}

void RowStripe::AddTo(std::vector<Piece>& pieces) {
  absl::MutexLock lock(&mu_);
  AddAllTo(pieces);
}

void RowStripe::AddMarkedTo(std::vector<Piece>& pieces, Extent extent) {
  absl::MutexLock lock(&mu_);
  if (extent == Extent::kAll) {
    marks_.Restart();
    return AddAllTo(pieces);
  }
  const std::shared_ptr<const RowSet> changed = extent == Extent::kSinceNewest
                                                    ? marks_.TakeSinceNewest()
                                                    : marks_.TakeSinceOlder();
  const RowLayout& layout = rules_->layout;
  PackedBlocks packed(arena_, layout, pieces);
  uint32_t first = 0;
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const Piece piece = {.block = blocks_[block],
                         .rows = static_cast<uint32_t>(std::min(
                             index_.size() - first, layout.rows_per_block())),
                         .changed = changed,
                         .first = first};
    first += piece.rows;
    const uint32_t count = piece.count();
    if (count == 0) continue;
    if (count * kSharedShare < piece.rows) {
      packed.Add(piece);
      continue;
    }
    pieces.push_back(piece);
    shared_[block] = true;
  }
}

void RowStripe::AddAllTo(std::vector<Piece>& pieces) {
  const RowLayout& layout = rules_->layout;
  size_t left = index_.size();
  for (const RowBlock& block : blocks_) {
    const size_t rows = std::min(left, layout.rows_per_block());
    pieces.push_back({block, static_cast<uint32_t>(rows)});
    left -= rows;
  }
  std::fill(shared_.begin(), shared_.end(), true);
}

void RowStripe::AddTo(RowSample& sample) const {
  absl::MutexLock lock(&mu_);
  const RowLayout& layout = rules_->layout;
  size_t left = index_.size();
  for (const RowBlock& block : blocks_) {
    const size_t rows = std::min(left, layout.rows_per_block());
    const uint64_t* const ids = block.ids(layout);
    for (size_t i = 0; i < rows; ++i) sample.Add(ids[i]);
    left -= rows;
  }
}

}  // namespace parasol
