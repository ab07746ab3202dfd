#include "ml/model/distinct_ids.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "ml/model/memory/grow.h"

namespace parasol {
namespace {

// Fewest places of a group: less is not worth another thread.
constexpr size_t kPlacesOfGroup = 1024;

// Slots for each id of a stripe: few ids meet. Larger stripes have fewer for
// each, so that they stay in the cache.
constexpr size_t kSlotsOfId = 8;
constexpr size_t kFewerSlotsOfId = 4;
constexpr size_t kLargeStripe = 1024;

// Waits for another thread, which is at work.
template <typename Condition>
void Await(const Condition& condition) {
  constexpr int kSpins = 1000;
  for (int spin = 0; !condition(); ++spin) {
    if (spin > kSpins) sched_yield();
  }
}

}  // namespace

void DistinctIds::Begin(absl::Span<const absl::Span<const uint64_t>> inputs) {
  inputs_.assign(inputs.begin(), inputs.end());
  input_begin_.assign(1, 0);
  for (const absl::Span<const uint64_t> input : inputs) {
    input_begin_.push_back(input_begin_.back() + input.size());
  }
  num_places_ = input_begin_.back();
  num_groups_ = std::clamp(num_places_ / kPlacesOfGroup, size_t{1}, kMaxGroups);
  is_divided_ = false;
  firsts_[0] = 0;
  for (size_t group = 0; group < num_groups_; ++group) {
    firsts_[group + 1] = kUnknown;
  }
  has_ids_ = false;
  has_counts_ = false;
  GrowTo(place_hashes_, num_places_);
  GrowTo(positions_, num_places_);
  GrowTo(places_, num_places_);
  GrowTo(counts_, num_places_);
  GrowTo(found_, num_places_ + kRowStripes);
  GrowTo(hashes_, num_places_);
}

// A counting sort.
void DistinctIds::Divide() {
  stripe_begin_ = {};
  uint64_t* const hashes = place_hashes_.data();
  size_t end = 0;
  for (const absl::Span<const uint64_t> input : inputs_) {
    for (const uint64_t id : input) {
      const uint64_t hash = RowHash(id);
      hashes[end++] = hash;
      ++stripe_begin_[StripeOf(hash) + 1];
    }
  }
  std::partial_sum(stripe_begin_.begin(), stripe_begin_.end(),
                   stripe_begin_.begin());
  std::array<int32_t, kRowStripes + 1> next = stripe_begin_;
  Place* const places = places_.data();
  for (size_t i = 0; i < num_places_; ++i) {
    Place& place = places[next[StripeOf(hashes[i])]++];
    place.hash = hashes[i];
    place.place = static_cast<int32_t>(i);
  }
  is_divided_.store(true, std::memory_order_release);
}

DistinctIds::Range DistinctIds::Number(size_t group) {
  Await([this] { return is_divided_.load(std::memory_order_acquire); });
  Range range = {.size = FindDistinct(group)};
  Await([&] {
    range.first = firsts_[group].load(std::memory_order_acquire);
    return range.first != kUnknown;
  });
  firsts_[group + 1].store(range.first + range.size, std::memory_order_release);
  uint64_t* hashes = hashes_.data() + range.first;
  for (size_t stripe = StripeBegin(group); stripe < StripeBegin(group + 1);
       ++stripe) {
    hashes = std::copy_n(FoundIn(stripe) + 1, stripe_size_[stripe], hashes);
  }
  for (const Place& place : PlacesOf(group, range).places) {
    positions_[place.place] = range.first + place.row;
  }
  return range;
}

// No branch depends on whether an id has been seen, which can't be foreseen:
// one that has not is found in front of all.
int32_t DistinctIds::FindDistinct(size_t group) {
  int32_t* counts = counts_.data() + PlaceBegin(group);
  std::fill(counts, counts_.data() + PlaceBegin(group + 1), 0);
  std::vector<uint32_t>& slots = slots_[group];
  int32_t before = 0;  // ids of the group's stripes before
  for (size_t stripe = StripeBegin(group); stripe < StripeBegin(group + 1);
       ++stripe) {
    Place* const begin = places_.data() + stripe_begin_[stripe];
    Place* const end = places_.data() + stripe_begin_[stripe + 1];
    const size_t count = end - begin;
    const size_t num_slots = std::bit_ceil(
        count * (count < kLargeStripe ? kSlotsOfId : kFewerSlotsOfId));
    GrowTo(slots, num_slots);
    std::fill_n(slots.begin(), num_slots, 0);
    uint32_t* const slot = slots.data();
    const size_t mask = num_slots - 1;
    uint64_t* const found = FoundIn(stripe);
    uint32_t size = 0;
    for (Place* place = begin; place != end; ++place) {
      const uint64_t hash = place->hash;
      found[0] = hash;
      size_t at = hash & mask;
      while (found[slot[at]] != hash) at = (at + 1) & mask;
      uint32_t number = slot[at];
      const bool is_new = number == 0;
      found[size + 1] = hash;
      size += is_new;
      number = is_new ? size : number;
      slot[at] = number;
      const int32_t row = before + static_cast<int32_t>(number) - 1;
      place->row = row;
      ++counts[row];
    }
    stripe_size_[stripe] = size;
    before += static_cast<int32_t>(size);
  }
  return before;
}

void DistinctIds::Assign(absl::Span<const absl::Span<const uint64_t>> inputs) {
  Begin(inputs);
  Divide();
  for (size_t group = 0; group < num_groups_; ++group) Number(group);
}

DistinctIds::GroupPlaces DistinctIds::PlacesOf(size_t group,
                                               Range range) const {
  const int32_t begin = PlaceBegin(group);
  const size_t size = PlaceBegin(group + 1) - begin;
  return {.first = begin,
          .places = absl::MakeConstSpan(places_).subspan(begin, size),
          .counts = absl::MakeConstSpan(counts_).subspan(begin, range.size)};
}

absl::Span<const uint64_t> DistinctIds::ids() {
  if (!has_ids_) {
    GrowTo(ids_, size());
    for (size_t i = 0; i < size(); ++i) ids_[i] = RowIdOf(hashes_[i]);
    has_ids_ = true;
  }
  return absl::MakeConstSpan(ids_).first(size());
}

absl::Span<const uint32_t> DistinctIds::counts() {
  if (!has_counts_) {
    GrowTo(places_of_, size());
    uint32_t* next = places_of_.data();
    for (size_t group = 0; group < num_groups_; ++group) {
      const int32_t rows = firsts_[group + 1].load() - firsts_[group].load();
      next = std::copy_n(counts_.data() + PlaceBegin(group), rows, next);
    }
    has_counts_ = true;
  }
  return absl::MakeConstSpan(places_of_).first(size());
}

}  // namespace parasol
