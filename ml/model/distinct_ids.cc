#include "ml/model/distinct_ids.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/row_hash.h"

namespace parasol {
namespace {

constexpr size_t kMinSlots = 64;

// Number of slots that are requested ahead of the id that is looked up.
constexpr size_t kAhead = 8;

}  // namespace

void DistinctIds::Clear() {
  ids_.clear();
  if (++round_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot());
  round_ = 1;
}

void DistinctIds::Add(absl::Span<const uint64_t> ids, int32_t* positions) {
  Reserve(ids_.size() + ids.size());
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) {
      __builtin_prefetch(&slots_[RowHash(ids[i + kAhead]) & mask]);
    }
    Slot& slot = Find(ids[i]);
    if (slot.round != round_) {
      slot = {ids[i], static_cast<int32_t>(ids_.size()), round_};
      ids_.push_back(ids[i]);
    }
    positions[i] = slot.number;
  }
}

// A counting sort.
void DistinctIds::SortByStripe(absl::Span<std::vector<int32_t>> positions) {
  std::array<int32_t, kRowStripes + 1> next = {};
  for (const uint64_t id : ids_) ++next[StripeOf(RowHash(id)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  unsorted_.swap(ids_);
  ids_.resize(unsorted_.size());
  numbers_.resize(unsorted_.size());
  for (size_t i = 0; i < unsorted_.size(); ++i) {
    const int32_t number = next[StripeOf(RowHash(unsorted_[i]))]++;
    ids_[number] = unsorted_[i];
    numbers_[i] = number;
  }
  for (std::vector<int32_t>& some : positions) {
    for (int32_t& position : some) position = numbers_[position];
  }
}

void DistinctIds::Reserve(size_t ids) {
  if (slots_.size() > 2 * ids) return;
  size_t slots = std::max(kMinSlots, slots_.size());
  while (slots <= 2 * ids) slots *= 2;
  slots_.assign(slots, Slot());
  ids_.reserve(slots / 2);
  for (size_t i = 0; i < ids_.size(); ++i) {
    Find(ids_[i]) = {ids_[i], static_cast<int32_t>(i), round_};
  }
}

DistinctIds::Slot& DistinctIds::Find(uint64_t id) {
  const size_t mask = slots_.size() - 1;
  size_t i = RowHash(id) & mask;
  while (slots_[i].round == round_ && slots_[i].id != id) i = (i + 1) & mask;
  return slots_[i];
}

}  // namespace parasol
