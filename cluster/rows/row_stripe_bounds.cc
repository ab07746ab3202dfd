// What a stripe does in a table with bounds: who gets a row, and which rows go.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/row_hash.h"
#include "cluster/rows/row_stripe.h"

namespace parasol {
namespace {

// The part of a full stripe's rows that goes at once.
constexpr size_t kEvictedShare = 16;

}  // namespace

void RowStripe::Admit(int64_t update, const Gradients& push,
                      const std::byte* ids) {
  const RowBounds& bounds = rules_->bounds;
  SortIfNeeded();
  RemoveExpired(update, kExpiredAtOnce);
  int64_t dropped = 0;
  for (size_t i = 0; i < push.run.size(); ++i) {
    const uint64_t hash = push.run.hashes[i];
    uint32_t number = index_.Find(hash);
    if (number != RowIndex::kNone && bounds.times() &&
        TouchedAt(number) < bounds.OldestAt(update)) {
      RemoveRow(number);
      number = RowIndex::kNone;
    }
    if (number == RowIndex::kNone) {
      if (!IsDue(update, hash, push.counts.empty() ? 1 : push.counts[i])) {
        ++dropped;
        continue;
      }
      MakeRoom(update);
      number = MakeRow(hash, LoadId(ids, push.run.positions[i]));
      if (bounds.times()) {
        if (keeps_order()) order_.Append();
        Touch(number, update);
      }
      continue;
    }
    // A push that comes at the same time may have a larger number, and have
    // been here before.
    if (bounds.times()) Touch(number, std::max(update, TouchedAt(number)));
  }
  rules_->totals->dropped_gradients.fetch_add(dropped,
                                              std::memory_order_relaxed);
  if (counts_ == nullptr) return;
  if (bounds.idle_steps > 0) OwnCounts().Sweep(update);
  NoteCounts();
}

bool RowStripe::IsDue(int64_t update, uint64_t hash, uint32_t occurrences) {
  if (counts_ == nullptr) return true;
  const int64_t count = int64_t{counts_->Find(hash, update)} + occurrences;
  if (count >= rules_->bounds.min_count) {
    OwnCounts().Erase(hash);
    return true;
  }
  OwnCounts().Set(hash, static_cast<uint32_t>(count), update);
  return false;
}

void RowStripe::Touch(uint32_t number, int64_t update) {
  const RowLayout& layout = rules_->layout;
  const size_t block = number >> layout.block_shift;
  if (shared_[block]) MakeUnique(block);
  int64_t& touched =
      blocks_[block].touched(layout)[number & (layout.rows_per_block() - 1)];
  touched = update;
  if (keeps_order()) {
    order_.Touch(number);
  } else {
    oldest_touch_ = std::min(oldest_touch_, update);
  }
}

int64_t RowStripe::TouchedAt(uint32_t number) const {
  const RowLayout& layout = rules_->layout;
  return blocks_[number >> layout.block_shift].touched(
      layout)[number & (layout.rows_per_block() - 1)];
}

uint64_t RowStripe::IdAt(uint32_t number) const {
  const RowLayout& layout = rules_->layout;
  return blocks_[number >> layout.block_shift].ids(
      layout)[number & (layout.rows_per_block() - 1)];
}

void RowStripe::HideExpired(int64_t update, const StripedIds::Run& run,
                            float** rows) const {
  const int64_t oldest = rules_->bounds.OldestAt(update);
  if (oldest <= 0) return;
  for (size_t i = 0; i < run.size(); ++i) {
    if (rows[i] == nullptr) continue;
    if (TouchedAt(index_.Find(run.hashes[i])) < oldest) rows[i] = nullptr;
  }
}

void RowStripe::RemoveExpired(int64_t update, size_t limit) {
  if (rules_->bounds.idle_steps == 0) return;
  SortIfNeeded();
  if (places_ != nullptr) return SweepExpired(update, limit == SIZE_MAX);
  const int64_t oldest = rules_->bounds.OldestAt(update);
  for (; limit > 0; --limit) {
    const uint32_t number = order_.oldest();
    if (number == TouchOrder::kNone || TouchedAt(number) >= oldest) return;
    RemoveRow(number);
  }
}

void RowStripe::FreeExpired(int64_t updates) {
  absl::MutexLock lock(&mu_);
  RemoveExpired(updates, SIZE_MAX);
  NoteRows();
}

// A row that has gone already makes room as well: whether it was freed before
// makes no difference.
void RowStripe::MakeRoom(int64_t update) {
  if (max_rows_ == 0 || size() < max_rows_) return;
  const size_t share = std::max(max_rows_ / kEvictedShare, size_t{1});
  if (places_ != nullptr) {
    SweepExpired(update, /*all=*/true);
    if (size() >= max_rows_) RemoveOldest(size() - max_rows_ + share);
    return;
  }
  if (TouchedAt(order_.oldest()) < rules_->bounds.OldestAt(update)) {
    RemoveExpired(update, index_.size() - max_rows_ + 1);
    if (index_.size() < max_rows_) return;
  }
  for (const uint64_t id : OldestIds(index_.size() - max_rows_ + share)) {
    RemoveRow(index_.Find(RowHash(id)));
  }
}

std::vector<uint64_t> RowStripe::OldestIds(size_t count) const {
  std::vector<uint64_t> ids;
  // The ids of one update are sorted when the next one's come.
  size_t first_of_update = 0;
  int64_t last = INT64_MIN;
  for (uint32_t row = order_.oldest(); row != TouchOrder::kNone;
       row = order_.next(row)) {
    const int64_t touched = TouchedAt(row);
    if (touched != last) {
      if (ids.size() >= count) break;
      first_of_update = ids.size();
      last = touched;
    }
    ids.push_back(IdAt(row));
  }
  if (ids.size() > count) {
    std::nth_element(ids.begin() + first_of_update, ids.begin() + count,
                     ids.end());
    ids.resize(count);
  }
  return ids;
}

void RowStripe::RemoveRow(uint32_t number) {
  if (marks_.is_on()) marks_.MarkRemoved(IdAt(number), size());
  TakeOut(number);
  rules_->totals->evicted_rows.fetch_add(1, std::memory_order_relaxed);
}

void RowStripe::TakeOut(uint32_t number) {
  const RowLayout& layout = rules_->layout;
  const auto last = static_cast<uint32_t>(index_.size() - 1);
  index_.Erase(RowHash(IdAt(number)));
  if (places_ != nullptr) {
    // Rows come and go often: one that only gets another number has not
    // changed.
    if (marks_.is_on()) marks_.Move(last, number);
    used_[number] = used_[last];
    used_.pop_back();
  }
  if (number != last) {
    const uint64_t moved = IdAt(last);
    const size_t block_number = number >> layout.block_shift;
    if (shared_[block_number]) MakeUnique(block_number);
    if (marks_.is_on() && places_ == nullptr) marks_.Mark(number);
    std::memcpy(Row(number), Row(last), layout.words * sizeof(float));
    const RowBlock& block = blocks_[block_number];
    const size_t place = number & (layout.rows_per_block() - 1);
    block.ids(layout)[place] = moved;
    if (layout.timed) block.touched(layout)[place] = TouchedAt(last);
    index_.Renumber(RowHash(moved), number);
  }
  if (keeps_order()) order_.Remove(number);
  if (last % layout.rows_per_block() != 0) return;
  blocks_.pop_back();
  shared_.pop_back();
  rules_->memory->Return(layout.rows_per_block() *
                         RowRules::BytesPerRow(layout));
}

void RowStripe::ClampTouched(int64_t updates, int64_t most) {
  absl::MutexLock lock(&mu_);
  if (rules_->layout.timed) {
    for (uint32_t number = 0; number < index_.size(); ++number) {
      if (TouchedAt(number) > most) Touch(number, most);
    }
    if (places_ != nullptr) {
      places_->ClampTouched(most);
      oldest_touch_ = std::min(oldest_touch_, most);
    }
    // Rows of one update are in the order of their ids.
    is_sorted_ = false;
    SortIfNeeded();
    NoteRows();
  }
  if (counts_ != nullptr) OwnCounts().ClampTouched(updates, most);
}

void RowStripe::SortRows() {
  absl::MutexLock lock(&mu_);
  SortIfNeeded();
  NoteRows();
}

void RowStripe::SortIfNeeded() {
  if (is_sorted_) return;
  is_sorted_ = true;
  if (places_ != nullptr) {
    if (max_rows_ > 0 && size() > max_rows_) RemoveOldest(size() - max_rows_);
    return;
  }
  struct Row {
    int64_t touched;
    uint64_t id;
    uint32_t number;

    bool operator<(const Row& other) const {
      return std::pair(touched, id) < std::pair(other.touched, other.id);
    }
  };
  std::vector<Row> rows(index_.size());
  for (uint32_t number = 0; number < rows.size(); ++number) {
    rows[number] = {TouchedAt(number), IdAt(number), number};
  }
  std::sort(rows.begin(), rows.end());
  std::vector<uint32_t> order(rows.size());
  std::transform(rows.begin(), rows.end(), order.begin(),
                 [](const Row& row) { return row.number; });
  order_.Assign(order);
  // Of another number of shards, or of larger bounds.
  while (max_rows_ > 0 && index_.size() > max_rows_) {
    RemoveRow(order_.oldest());
  }
}

IdCounts& RowStripe::OwnCounts() {
  if (std::exchange(counts_are_shared_, false)) {
    counts_ = std::make_shared<IdCounts>(*counts_);
  }
  return *counts_;
}

void RowStripe::NoteCounts() {
  const size_t ids = counts_->size();
  const size_t bytes = counts_->bytes();
  RowTotals& totals = *rules_->totals;
  // Unsigned: a difference below 0 is added as such.
  totals.counted_ids.fetch_add(ids - noted_ids_, std::memory_order_relaxed);
  totals.count_bytes.fetch_add(bytes - noted_bytes_, std::memory_order_relaxed);
  if (bytes > noted_bytes_) rules_->memory->Take(bytes - noted_bytes_);
  if (bytes < noted_bytes_) rules_->memory->Return(noted_bytes_ - bytes);
  noted_ids_ = ids;
  noted_bytes_ = bytes;
}

void RowStripe::InsertCount(const IdCounts::Entry& entry) {
  absl::MutexLock lock(&mu_);
  if (counts_ == nullptr || entry.count == 0 || Has(entry.hash)) return;
  OwnCounts().Set(entry.hash, entry.count, entry.touched);
  NoteCounts();
}

void RowStripe::AddCountsTo(Contents& contents) {
  if (counts_ == nullptr || counts_->size() == 0) return;
  contents.counts.push_back(counts_);
  counts_are_shared_ = true;
}

}  // namespace parasol
