// What a stripe does in a table with a tier: which rows are in memory, and
// which are on the disk.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/row_hash.h"
#include "base/status_macros.h"
#include "cluster/rows/row_stripe.h"

namespace parasol {
namespace {

// Rows that have gone are looked for so often while as many updates are made as
// it takes for one to go.
constexpr int64_t kSweepsPerLife = 8;

}  // namespace

void RowStripe::AddOnDisk(const StripedIds::Run& run,
                          FetchedRows& fetched) const {
  absl::MutexLock lock(&mu_);
  if (places_->size() == 0) return;
  for (const uint64_t hash : run.hashes) {
    if (index_.Find(hash) != RowIndex::kNone) continue;
    const std::optional<LogPlace> place = places_->Find(hash);
    if (place.has_value()) fetched.Add(hash, RowIdOf(hash), *place);
  }
}

absl::Status RowStripe::BringIn(const StripedIds::Run& run,
                                const FetchedRange& fetched) {
  for (size_t i = fetched.begin; i < fetched.end; ++i) Take(*fetched.rows, i);
  while (true) {
    FetchedRows more(rules_->tier->shared_log());
    for (const uint64_t hash : run.hashes) {
      const uint32_t number = index_.Find(hash);
      if (number != RowIndex::kNone) {
        used_[number] = true;
        continue;
      }
      const std::optional<LogPlace> place = places_->Find(hash);
      if (place.has_value()) more.Add(hash, RowIdOf(hash), *place);
    }
    if (more.hashes.empty()) return absl::OkStatus();
    // Other requests have moved these rows: one of them has done its work.
    mu_.Unlock();
    const absl::Status status = more.reads.Finish();
    mu_.Lock();
    RETURN_IF_ERROR(status);
    rules_->totals->disk_reads.fetch_add(more.reads.disk_reads(),
                                         std::memory_order_relaxed);
    for (size_t i = 0; i < more.hashes.size(); ++i) Take(more, i);
  }
}

void RowStripe::Take(const FetchedRows& fetched, size_t i) {
  const uint64_t hash = fetched.hashes[i];
  const LogPlace place = fetched.reads.place(i);
  if (places_->Find(hash) != place) return;
  const LoggedRow row = fetched.reads.row(i);
  const uint32_t number = AddRow(hash, row.id);
  std::memcpy(Row(number), row.elements, rules_->layout.words * sizeof(float));
  if (rules_->layout.timed) Touch(number, row.touched);
  if (marks_.is_on()) {
    using Change = RowMarks::Change;
    marks_.Set(number, row.changed >= turns_.newest  ? Change::kSinceNewest
                       : row.changed >= turns_.older ? Change::kSinceOlder
                                                     : Change::kBefore);
  }
  places_->Erase(hash);
  rules_->tier->log().Free(place);
}

void RowStripe::SendOut() {
  while (index_.size() > rules_->tier->rows_of_stripe()) {
    if (!SendOut(NextToSendOut())) return;
  }
}

uint32_t RowStripe::NextToSendOut() {
  while (true) {
    if (hand_ >= index_.size()) hand_ = 0;
    if (!std::exchange(used_[hand_], false)) return hand_;
    ++hand_;
  }
}

bool RowStripe::SendOut(uint32_t number) {
  const uint64_t id = IdAt(number);
  uint32_t changed = 0;
  if (marks_.is_on()) {
    switch (marks_.ChangeOf(number)) {
      case RowMarks::Change::kSinceNewest:
        changed = turns_.newest;
        break;
      case RowMarks::Change::kSinceOlder:
        changed = turns_.older;
        break;
      case RowMarks::Change::kBefore:
        break;
    }
  }
  const int64_t touched = rules_->layout.timed ? TouchedAt(number) : 0;
  const std::optional<LogPlace> place =
      rules_->tier->log().AppendUnlessBehind({.id = id,
                                              .changed = changed,
                                              .touched = touched,
                                              .elements = Row(number)});
  if (!place.has_value()) return false;
  places_->Insert(RowHash(id), *place, touched);
  TakeOut(number);
  return true;
}

void RowStripe::MoveOnDisk(LogPlace place, const LoggedRow& row) {
  const uint64_t hash = RowHash(row.id);
  absl::MutexLock lock(&mu_);
  if (places_->Find(hash) != place) return;
  places_->Move(hash, rules_->tier->log().Move(place, row));
}

void RowStripe::RemoveOnDisk(uint64_t hash) {
  if (marks_.is_on()) marks_.MarkRemoved(RowIdOf(hash), size());
  rules_->tier->log().Free(*places_->Find(hash));
  places_->Erase(hash);
  rules_->totals->evicted_rows.fetch_add(1, std::memory_order_relaxed);
}

void RowStripe::SweepExpired(int64_t update, bool all) {
  const int64_t oldest = rules_->bounds.OldestAt(update);
  if (oldest_touch_ >= oldest || (!all && update < next_sweep_)) return;
  next_sweep_ = update + rules_->bounds.idle_steps / kSweepsPerLife;
  oldest_touch_ = INT64_MAX;
  for (uint32_t number = 0; number < index_.size();) {
    if (TouchedAt(number) < oldest) {
      RemoveRow(number);
    } else {
      oldest_touch_ = std::min(oldest_touch_, TouchedAt(number++));
    }
  }
  std::vector<uint64_t> expired;
  places_->ForEach([&](uint64_t hash, int64_t touched) {
    if (touched < oldest) {
      expired.push_back(hash);
    } else {
      oldest_touch_ = std::min(oldest_touch_, touched);
    }
  });
  for (const uint64_t hash : expired) RemoveOnDisk(hash);
}

std::vector<uint64_t> RowStripe::OldestOfAll(size_t count) const {
  std::vector<std::pair<int64_t, uint64_t>> rows;
  rows.reserve(size());
  for (uint32_t number = 0; number < index_.size(); ++number) {
    rows.emplace_back(TouchedAt(number), IdAt(number));
  }
  places_->ForEach([&rows](uint64_t hash, int64_t touched) {
    rows.emplace_back(touched, RowIdOf(hash));
  });
  count = std::min(count, rows.size());
  if (count < rows.size()) {
    std::nth_element(rows.begin(), rows.begin() + count, rows.end());
  }
  std::vector<uint64_t> ids(count);
  std::transform(rows.begin(), rows.begin() + count, ids.begin(),
                 [](const auto& row) { return row.second; });
  return ids;
}

void RowStripe::RemoveOldest(size_t count) {
  for (const uint64_t id : OldestOfAll(count)) {
    const uint64_t hash = RowHash(id);
    const uint32_t number = index_.Find(hash);
    if (number == RowIndex::kNone) {
      RemoveOnDisk(hash);
    } else {
      RemoveRow(number);
    }
  }
}

void RowStripe::NotePlaces() {
  const size_t rows = places_->size();
  const size_t bytes = places_->bytes();
  RowTotals& totals = *rules_->totals;
  // Unsigned: a difference below 0 is added as such.
  totals.rows_on_disk.fetch_add(rows - noted_on_disk_,
                                std::memory_order_relaxed);
  totals.place_bytes.fetch_add(bytes - noted_place_bytes_,
                               std::memory_order_relaxed);
  if (bytes > noted_place_bytes_) {
    rules_->memory->Take(bytes - noted_place_bytes_);
  } else {
    rules_->memory->Return(noted_place_bytes_ - bytes);
  }
  noted_on_disk_ = rows;
  noted_place_bytes_ = bytes;
}

}  // namespace parasol
