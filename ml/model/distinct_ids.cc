#include "ml/model/distinct_ids.h"

#include <algorithm>

namespace parasol {
namespace {

constexpr size_t kMinSlots = 64;

// The finaliser of MurmurHash3: ids that differ in any bits are far apart.
uint64_t Mix(uint64_t id) {
  id ^= id >> 33;
  id *= 0xff51afd7ed558ccdu;
  id ^= id >> 33;
  id *= 0xc4ceb9fe1a85ec53u;
  return id ^ (id >> 33);
}

}  // namespace

void DistinctIds::Clear() {
  ids_.clear();
  if (++round_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot());
  round_ = 1;
}

void DistinctIds::Add(absl::Span<const uint64_t> ids, int32_t* positions) {
  Reserve(ids_.size() + ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    Slot& slot = Find(ids[i]);
    if (slot.round != round_) {
      slot = {ids[i], static_cast<int32_t>(ids_.size()), round_};
      ids_.push_back(ids[i]);
    }
    positions[i] = slot.number;
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
  size_t i = Mix(id) & mask;
  while (slots_[i].round == round_ && slots_[i].id != id) i = (i + 1) & mask;
  return slots_[i];
}

}  // namespace parasol
