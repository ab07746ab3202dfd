#include "cluster/rows/disk_places.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/row_hash.h"

namespace parasol {
namespace {

constexpr size_t kFirstEntries = 16;

// The bits of an entry that have a part of the place.
constexpr uint64_t kPlaceMask = (uint64_t{1} << kRowStripeBits) - 1;
static_assert(DiskPlaces::kPlaces == kPlaceMask << 32);

// It grows by an eighth before more than this part of the entries is in use:
// little memory is free.
constexpr double kMostLoad = .85;

}  // namespace

DiskPlaces::DiskPlaces(bool timed)
    : timed_(timed), entries_(kFirstEntries), places_(kFirstEntries) {
  if (timed) touched_.resize(kFirstEntries);
}

size_t DiskPlaces::HomeOf(uint64_t hash) const {
  const auto bits = static_cast<unsigned __int128>(hash << kRowStripeBits);
  return static_cast<size_t>((bits * entries_.size()) >> 64);
}

uint64_t DiskPlaces::HashAt(size_t slot) const {
  return stripe_ | entries_[slot] >> kRowStripeBits;
}

size_t DiskPlaces::SlotOf(uint64_t hash) const {
  const uint64_t wanted = hash << kRowStripeBits;
  size_t slot = HomeOf(hash);
  while (entries_[slot] != 0 && (entries_[slot] & ~kPlaceMask) != wanted) {
    slot = Next(slot);
  }
  return slot;
}

std::optional<LogPlace> DiskPlaces::Find(uint64_t hash) const {
  const size_t slot = SlotOf(hash);
  if (entries_[slot] == 0) return std::nullopt;
  return ((entries_[slot] & kPlaceMask) - 1) << 32 | places_[slot];
}

int64_t DiskPlaces::TouchedAt(uint64_t hash) const {
  return timed_ ? touched_[SlotOf(hash)] : 0;
}

void DiskPlaces::Put(size_t slot, uint64_t hash, LogPlace place,
                     int64_t touched) {
  CHECK_LT(place, kPlaces) << "places on the disk";
  entries_[slot] = hash << kRowStripeBits | (1 + (place >> 32));
  places_[slot] = static_cast<uint32_t>(place);
  if (timed_) touched_[slot] = touched;
}

void DiskPlaces::Insert(uint64_t hash, LogPlace place, int64_t touched) {
  stripe_ = StripeOf(hash) << (64 - kRowStripeBits);
  if (size_ >= static_cast<size_t>(kMostLoad * entries_.size())) Grow();
  Put(SlotOf(hash), hash, place, touched);
  ++size_;
}

void DiskPlaces::Move(uint64_t hash, LogPlace place) {
  const size_t slot = SlotOf(hash);
  Put(slot, hash, place, timed_ ? touched_[slot] : 0);
}

// Entries behind the hole move into it unless they would come before their
// homes.
void DiskPlaces::Erase(uint64_t hash) {
  size_t hole = SlotOf(hash);
  --size_;
  const size_t slots = entries_.size();
  for (size_t slot = Next(hole); entries_[slot] != 0; slot = Next(slot)) {
    const size_t home = HomeOf(HashAt(slot));
    const size_t from_home = (slot + slots - home) % slots;
    const size_t from_hole = (slot + slots - hole) % slots;
    if (from_home < from_hole) continue;
    entries_[hole] = entries_[slot];
    places_[hole] = places_[slot];
    if (timed_) touched_[hole] = touched_[slot];
    hole = slot;
  }
  entries_[hole] = 0;
}

void DiskPlaces::Grow() {
  const size_t slots = entries_.size() + entries_.size() / 8;
  const std::vector<uint64_t> entries =
      std::exchange(entries_, std::vector<uint64_t>(slots));
  const std::vector<uint32_t> places =
      std::exchange(places_, std::vector<uint32_t>(slots));
  const std::vector<int64_t> touched =
      std::exchange(touched_, std::vector<int64_t>(timed_ ? slots : 0));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == 0) continue;
    const size_t slot = SlotOf(stripe_ | entries[i] >> kRowStripeBits);
    entries_[slot] = entries[i];
    places_[slot] = places[i];
    if (timed_) touched_[slot] = touched[i];
  }
}

void DiskPlaces::ClampTouched(int64_t most) {
  for (int64_t& touched : touched_) touched = std::min(touched, most);
}

void DiskPlaces::ForEach(
    absl::FunctionRef<void(uint64_t hash, int64_t touched)> visit) const {
  for (size_t slot = 0; slot < entries_.size(); ++slot) {
    if (entries_[slot] != 0) visit(HashAt(slot), timed_ ? touched_[slot] : 0);
  }
}

size_t DiskPlaces::bytes() const {
  return entries_.capacity() * sizeof(uint64_t) +
         places_.capacity() * sizeof(uint32_t) +
         touched_.capacity() * sizeof(int64_t);
}

}  // namespace parasol
