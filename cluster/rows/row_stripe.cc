#include "cluster/rows/row_stripe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "cluster/rows/widened_rows.h"

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

// Rows of bfloat16 values that are loaded together before they are widened.
constexpr size_t kLoadedRows = 32;

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
                layout_.words * sizeof(float));
    packed.block.ids(layout_)[packed.rows] = block.ids(layout_)[row];
    if (layout_.timed) {
      packed.block.touched(layout_)[packed.rows] = block.touched(layout_)[row];
    }
    ++packed.rows;
  }

  static constexpr size_t kNone = SIZE_MAX;
  RowArena& arena_;
  const RowLayout& layout_;
  std::vector<RowStripe::Piece>& pieces_;
  size_t last_ = kNone;  // the block that has room
};

}  // namespace

uint32_t RowStripe::Piece::count() const {
  if (changed == nullptr) return rows;
  return CountIn(*changed, first, rows);
}

RowStripe::RowStripe(std::shared_ptr<const RowRules> rules, RowArena& arena,
                     double max_load, size_t max_rows)
    : arena_(arena),
      rules_(std::move(rules)),
      index_(arena, max_load),
      max_rows_(max_rows) {
  absl::MutexLock lock(&mu_);
  if (rules_->tier != nullptr) {
    places_ = std::make_unique<DiskPlaces>(rules_->layout.timed);
    NotePlaces();
  }
  if (!rules_->bounds.counts()) return;
  counts_ = std::make_shared<IdCounts>(rules_->bounds);
  NoteCounts();
}

void RowStripe::UseRules(std::shared_ptr<const RowRules> rules,
                         size_t max_rows) {
  absl::MutexLock lock(&mu_);
  rules_ = std::move(rules);
  max_rows_ = max_rows;
  if (counts_ != nullptr) OwnCounts().UseBounds(rules_->bounds);
  // Rows may go sooner than they did.
  next_sweep_ = 0;
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
  const RowLayout& layout = rules_->layout;
  if (!layout.bfloat16) {
    FillNew(id, Row(number));
    return number;
  }
  const auto elements = std::make_unique_for_overwrite<float[]>(layout.floats);
  FillNew(id, elements.get());
  layout.Write(elements.get(), Row(number));
  return number;
}

void RowStripe::FillNew(uint64_t id, float* elements) const {
  rules_->initializer.Fill(id, elements);
  rules_->optimizer->FillSlots(rules_->layout.width, elements);
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
  index_.Insert(hash, number);
  if (places_ != nullptr) used_.push_back(true);
  return number;
}

template <RowStripe::Access kAccess>
void RowStripe::Locate(const StripedIds::Run& run, const std::byte* ids,
                       float** rows) {
  // A row that is missing goes to the last block. Were the block copied only
  // then, rows of it that have been located would lie in the block of a
  // snapshot, which may end.
  const bool makes_rows = !rules_->bounds.any();
  if (makes_rows && !blocks_.empty() && shared_.back()) {
    MakeUnique(blocks_.size() - 1);
  }
  // Copies, which no store can change.
  const RowLayout layout = rules_->layout;
  const size_t in_block = layout.rows_per_block() - 1;
  const size_t bytes =
      (kAccess == Access::kWrite ? layout.words : layout.value_words()) *
      sizeof(float);
  const size_t count = run.size();
  const uint64_t* const hashes = run.hashes.data();
  const bool is_marked = marks_.is_on();
  for (size_t i = 0; i < std::min(kAhead, count); ++i) {
    index_.Prefetch(hashes[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.Prefetch(hashes[i + kAhead]);
    uint32_t number = index_.Find(hashes[i]);
    if (number == RowIndex::kNone) {
      if (!makes_rows) {
        rows[i] = nullptr;
        continue;
      }
      number = MakeRow(hashes[i], LoadId(ids, run.positions[i]));
      if (is_marked && kAccess == Access::kRead) marks_.Mark(number);
    }
    const size_t block = number >> layout.block_shift;
    if (kAccess == Access::kWrite && shared_[block]) MakeUnique(block);
    if (is_marked && kAccess == Access::kWrite) marks_.Mark(number);
    rows[i] = blocks_[block].row(number & in_block, layout);
    PrefetchRow(rows[i], bytes);
  }
}

void RowStripe::CopyValues(const StripedIds::Run& run, const std::byte* ids,
                           const float* const* rows, float* out) const {
  if (rules_->layout.bfloat16) return CopyWidened(run, ids, rows, out);
  const size_t width = rules_->layout.width;
  for (size_t i = 0; i < run.size(); ++i) {
    float* const to = out + run.positions[i] * width;
    if (rows[i] == nullptr) {
      rules_->initializer.Fill(LoadId(ids, run.positions[i]), to);
    } else {
      std::memcpy(to, rows[i], width * sizeof(float));
    }
  }
}

void RowStripe::CopyWidened(const StripedIds::Run& run, const std::byte* ids,
                            const float* const* rows, float* out) const {
  const RowLayout& layout = rules_->layout;
  for (size_t first = 0; first < run.size(); first += kLoadedRows) {
    const size_t end = std::min(first + kLoadedRows, run.size());
    LoadRows({rows + first, end - first}, layout.value_words());
    for (size_t i = first; i < end; ++i) {
      float* const to = out + run.positions[i] * layout.width;
      if (rows[i] == nullptr) {
        rules_->initializer.Fill(LoadId(ids, run.positions[i]), to);
      } else {
        layout.ReadValues(rows[i], to);
      }
    }
  }
}

absl::Status RowStripe::Pull(int64_t updates, const StripedIds::Run& run,
                             const std::byte* ids, float* out,
                             const FetchedRange& fetched) {
  std::array<float*, kGroup> rows;
  absl::MutexLock lock(&mu_);
  if (places_ != nullptr) {
    RETURN_IF_ERROR(BringIn(run, fetched));
  }
  const bool is_timed = rules_->layout.timed;
  for (size_t first = 0; first < run.size(); first += kGroup) {
    const StripedIds::Run group = run.subrun(first, kGroup);
    Locate<Access::kRead>(group, ids, rows.data());
    if (is_timed) HideExpired(updates + 1, group, rows.data());
    CopyValues(group, ids, rows.data(), out);
  }
  if (places_ != nullptr) SendOut();
  NoteRows();
  return absl::OkStatus();
}

absl::Status RowStripe::Push(int64_t iterations, const Gradients& push,
                             const std::byte* ids, float* out,
                             const FetchedRange& fetched) {
  std::array<float*, kGroup> rows;
  absl::MutexLock lock(&mu_);
  if (places_ != nullptr) {
    RETURN_IF_ERROR(BringIn(push.run, fetched));
  }
  const size_t width = rules_->layout.width;
  const bool is_bounded = rules_->bounds.any();
  if (is_bounded) Admit(iterations + 1, push, ids);
  for (size_t first = 0; first < push.run.size(); first += kGroup) {
    const StripedIds::Run group = push.run.subrun(first, kGroup);
    Locate<Access::kWrite>(group, ids, rows.data());
    const absl::Span<const std::byte* const> gradients =
        push.gradients.subspan(first, group.size());
    if (rules_->layout.bfloat16) {
      ApplyWidened(iterations, group, gradients, rows.data());
    } else if (is_bounded) {
      ApplyToPresent(iterations, gradients, rows.data());
    } else {
      rules_->optimizer->ApplyRows(iterations, {.count = group.size(),
                                                .width = width,
                                                .gradient_of = gradients.data(),
                                                .rows = rows.data()});
    }
    if (out != nullptr) CopyValues(group, ids, rows.data(), out);
  }
  if (rules_->optimizer->other_rows() != Optimizer::OtherRows::kUntouched) {
    UpdateOtherRows(iterations, push.run);
  }
  if (places_ != nullptr) SendOut();
  NoteRows();
  return absl::OkStatus();
}

bool RowStripe::Has(uint64_t hash) const {
  return index_.Find(hash) != RowIndex::kNone ||
         (places_ != nullptr && places_->Find(hash).has_value());
}

void RowStripe::NoteRows() {
  if (places_ != nullptr) NotePlaces();
  const size_t before = size_.load(std::memory_order_relaxed);
  const size_t now = size();
  if (now == before) return;
  size_.store(now, std::memory_order_relaxed);
  // Unsigned: a difference below 0 is added as such.
  rules_->totals->rows.fetch_add(now - before, std::memory_order_relaxed);
}

void RowStripe::ApplyToPresent(int64_t iterations,
                               absl::Span<const std::byte* const> gradients,
                               float* const* rows) {
  std::array<const std::byte*, kGroup> gradient_of;
  std::array<float*, kGroup> present;
  size_t count = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (rows[i] == nullptr) continue;
    gradient_of[count] = gradients[i];
    present[count++] = rows[i];
  }
  rules_->optimizer->ApplyRows(iterations, {.count = count,
                                            .width = rules_->layout.width,
                                            .gradient_of = gradient_of.data(),
                                            .rows = present.data()});
}

void RowStripe::ApplyWidened(int64_t iterations, const StripedIds::Run& run,
                             absl::Span<const std::byte* const> gradients,
                             float* const* rows) {
  WidenedRows widened(rules_->layout, *rules_->optimizer, rules_->rounding_key,
                      iterations);
  for (size_t i = 0; i < run.size(); ++i) {
    if (rows[i] != nullptr) widened.Add(run.hashes[i], rows[i], gradients[i]);
  }
  widened.Apply();
}

void RowStripe::UpdateOtherRows(int64_t iterations,
                                const StripedIds::Run& touched) {
  std::vector<bool> is_touched(index_.size());
  for (const uint64_t hash : touched.hashes) {
    const uint32_t number = index_.Find(hash);
    if (number != RowIndex::kNone) is_touched[number] = true;
  }
  if (rules_->layout.bfloat16) {
    WidenedRows widened(rules_->layout, *rules_->optimizer,
                        rules_->rounding_key, iterations);
    for (uint32_t number = 0; number < is_touched.size(); ++number) {
      if (is_touched[number]) continue;
      widened.Add(RowHash(IdAt(number)), WritableRow(number));
    }
    return widened.Apply();
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
                               const float* rows, const int64_t* touched,
                               int64_t update) {
  absl::MutexLock lock(&mu_);
  const size_t floats = rules_->layout.floats;
  for (size_t i = 0; i < run.size(); ++i) {
    const uint64_t id = LoadId(ids, run.positions[i]);
    if (Has(run.hashes[i])) {
      return absl::AlreadyExistsError(absl::StrCat("row ", id));
    }
    const uint32_t number = AddRow(run.hashes[i], id);
    rules_->layout.Write(rows + run.positions[i] * floats, Row(number));
    if (!rules_->layout.timed) continue;
    if (keeps_order()) order_.Append();
    Touch(number, touched == nullptr ? update : touched[run.positions[i]]);
    is_sorted_ = false;
  }
  if (places_ != nullptr) SendOut();
  NoteRows();
  return absl::OkStatus();
}

size_t RowStripe::CountMissing(const StripedIds::Run& run) const {
  absl::MutexLock lock(&mu_);
  size_t missing = 0;
  for (const uint64_t hash : run.hashes) {
    if (!Has(hash)) ++missing;
  }
  return missing;
}

void RowStripe::AddTo(int64_t updates, Contents& contents) {
  absl::MutexLock lock(&mu_);
  RemoveExpired(updates, SIZE_MAX);
  AddAllTo(contents.pieces);
  AddCountsTo(contents);
  NoteRows();
}

void RowStripe::AddMarkedTo(int64_t updates, Extent extent, const Turns& turns,
                            Contents& contents) {
  absl::MutexLock lock(&mu_);
  RemoveExpired(updates, SIZE_MAX);
  turns_ = turns;
  if (extent == Extent::kAll) {
    marks_.Restart();
    AddAllTo(contents.pieces);
  } else if (marks_.is_lost()) {
    contents.is_complete = false;
  } else {
    AddChangedTo(extent, contents);
  }
  AddCountsTo(contents);
  NoteRows();
}

bool RowStripe::has_lost_marks() const {
  absl::MutexLock lock(&mu_);
  return marks_.is_lost();
}

void RowStripe::AddChangedTo(Extent extent, Contents& contents) {
  std::vector<Piece>& pieces = contents.pieces;
  const std::shared_ptr<const RowSet> changed = extent == Extent::kSinceNewest
                                                    ? marks_.TakeSinceNewest()
                                                    : marks_.TakeSinceOlder();
  contents.removed.insert(contents.removed.end(), marks_.removed().begin(),
                          marks_.removed().end());
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
  if (places_ == nullptr) return;
  places_->ForEach(
      [&sample](uint64_t hash, int64_t) { sample.Add(RowIdOf(hash)); });
}

}  // namespace parasol
