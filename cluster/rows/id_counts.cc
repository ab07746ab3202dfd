#include "cluster/rows/id_counts.h"

#include <algorithm>
#include <utility>

#include "base/row_hash.h"

namespace parasol {
namespace {

constexpr size_t kFirstSlots = 16;

// The bits of an entry that have the count.
constexpr uint64_t kCountMask = (uint64_t{1} << kRowStripeBits) - 1;

// It grows by an eighth before more than this part of the slots is in use:
// little memory is free.
constexpr double kMaxLoad = .85;

size_t Most(size_t slots) { return static_cast<size_t>(kMaxLoad * slots); }

}  // namespace

IdCounts::IdCounts(const RowBounds& bounds)
    : bounds_(bounds), entries_(kFirstSlots) {
  if (bounds.min_count - 1 > static_cast<int64_t>(kCountMask)) {
    counts_.resize(kFirstSlots);
  }
  if (bounds.idle_steps > 0) touched_.resize(kFirstSlots);
}

size_t IdCounts::HomeOf(uint64_t hash) const {
  const auto bits = static_cast<unsigned __int128>(hash << kRowStripeBits);
  return static_cast<size_t>((bits * entries_.size()) >> 64);
}

uint64_t IdCounts::HashAt(size_t slot) const {
  return stripe_ | entries_[slot] >> kRowStripeBits;
}

uint32_t IdCounts::CountAt(size_t slot) const {
  return counts_.empty() ? entries_[slot] & kCountMask : counts_[slot];
}

// Counts go, and are swept, long before the low bits repeat themselves. A push
// that is carried out beside this one may have a larger number.
int64_t IdCounts::TouchedAt(size_t slot, int64_t update) const {
  if (touched_.empty()) return 0;
  const uint32_t age = static_cast<uint32_t>(update) - touched_[slot];
  return update - static_cast<int32_t>(age);
}

size_t IdCounts::SlotOf(uint64_t hash) const {
  const uint64_t wanted = hash << kRowStripeBits;
  size_t slot = HomeOf(hash);
  while (entries_[slot] != 0 && (entries_[slot] & ~kCountMask) != wanted) {
    slot = Next(slot);
  }
  return slot;
}

uint32_t IdCounts::Find(uint64_t hash, int64_t update) const {
  const size_t slot = SlotOf(hash);
  if (entries_[slot] == 0 || HasGone(slot, update)) return 0;
  return CountAt(slot);
}

void IdCounts::Put(size_t slot, uint64_t hash, uint32_t count,
                   int64_t touched) {
  entries_[slot] = hash << kRowStripeBits | (counts_.empty() ? count : 1);
  if (!counts_.empty()) counts_[slot] = count;
  if (!touched_.empty()) touched_[slot] = static_cast<uint32_t>(touched);
}

void IdCounts::Set(uint64_t hash, uint32_t count, int64_t touched) {
  stripe_ = StripeOf(hash) << (64 - kRowStripeBits);
  // A larger one, of rules before these, is as good.
  count = std::min<int64_t>(count, bounds_.min_count - 1);
  size_t slot = SlotOf(hash);
  if (entries_[slot] == 0) {
    if (size_ == Most(entries_.size())) {
      Grow(touched);
      slot = SlotOf(hash);
    }
    ++size_;
  } else {
    touched = std::max(touched, TouchedAt(slot, touched));
  }
  Put(slot, hash, count, touched);
}

void IdCounts::Erase(uint64_t hash) {
  const size_t slot = SlotOf(hash);
  if (entries_[slot] != 0) EraseSlot(slot);
}

// Entries behind the hole move into it unless they would come before their
// homes.
void IdCounts::EraseSlot(size_t hole) {
  --size_;
  const size_t slots = entries_.size();
  for (size_t slot = Next(hole); entries_[slot] != 0; slot = Next(slot)) {
    const size_t home = HomeOf(HashAt(slot));
    const size_t from_home = (slot + slots - home) % slots;
    const size_t from_hole = (slot + slots - hole) % slots;
    if (from_home < from_hole) continue;
    entries_[hole] = entries_[slot];
    if (!counts_.empty()) counts_[hole] = counts_[slot];
    if (!touched_.empty()) touched_[hole] = touched_[slot];
    hole = slot;
  }
  entries_[hole] = 0;
}

void IdCounts::Grow(int64_t update) {
  IdCounts larger(bounds_);
  const size_t slots =
      entries_.size() + std::max(entries_.size() / 8, size_t{1});
  larger.entries_.resize(slots);
  if (!counts_.empty()) larger.counts_.resize(slots);
  if (!touched_.empty()) larger.touched_.resize(slots);
  larger.stripe_ = stripe_;
  ForEach(update, [&larger](const Entry& entry) {
    larger.Put(larger.SlotOf(entry.hash), entry.hash, entry.count,
               entry.touched);
    ++larger.size_;
  });
  *this = std::move(larger);
}

void IdCounts::Sweep(int64_t update) {
  if (touched_.empty() || size_ == 0) return;
  const size_t slots = entries_.size();
  // One more: what moves into a hole behind the place is looked at later.
  size_t left = slots / static_cast<size_t>(bounds_.idle_steps) + 2;
  for (left = std::min(left, slots); left > 0; --left) {
    if (swept_ >= slots) swept_ = 0;
    if (entries_[swept_] != 0 && HasGone(swept_, update)) {
      EraseSlot(swept_);
    } else {
      ++swept_;
    }
  }
}

void IdCounts::ClampTouched(int64_t update, int64_t most) {
  for (size_t slot = 0; slot < touched_.size(); ++slot) {
    if (entries_[slot] == 0 || TouchedAt(slot, update) <= most) continue;
    touched_[slot] = static_cast<uint32_t>(most);
  }
}

void IdCounts::ForEach(int64_t update,
                       absl::FunctionRef<void(const Entry&)> visit) const {
  for (size_t slot = 0; slot < entries_.size(); ++slot) {
    if (entries_[slot] == 0 || HasGone(slot, update)) continue;
    visit({.hash = HashAt(slot),
           .count = CountAt(slot),
           .touched = TouchedAt(slot, update)});
  }
}

void IdCounts::UseBounds(const RowBounds& bounds) {
  const bool is_wide = bounds.min_count - 1 > static_cast<int64_t>(kCountMask);
  bounds_ = bounds;
  if (is_wide && counts_.empty()) {
    counts_.resize(entries_.size());
    for (size_t slot = 0; slot < entries_.size(); ++slot) {
      if (entries_[slot] == 0) continue;
      counts_[slot] = entries_[slot] & kCountMask;
      entries_[slot] = (entries_[slot] & ~kCountMask) | 1;
    }
  }
}

size_t IdCounts::bytes() const {
  return entries_.capacity() * sizeof(uint64_t) +
         (counts_.capacity() + touched_.capacity()) * sizeof(uint32_t);
}

}  // namespace parasol
