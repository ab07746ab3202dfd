#include "cluster/rows/striped_ids.h"

#include <numeric>
#include <utility>

namespace parasol {

// A counting sort. Ids that follow each other often have one stripe, so they
// are counted together.
void StripedIds::Assign(const std::byte* ids, size_t count) {
  unsorted_.resize(count);
  hashes_.resize(count);
  positions_.resize(count);
  begin_.fill(0);
  uint64_t* const hashes = unsorted_.data();
  size_t last = 0;
  size_t first_of_last = 0;
  bool is_sorted = true;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t hash = RowHash(LoadId(ids, i));
    hashes[i] = hash;
    const size_t stripe = StripeOf(hash);
    if (stripe == last) continue;
    begin_[last + 1] += i - first_of_last;
    first_of_last = i;
    is_sorted &= stripe > last;
    last = stripe;
  }
  begin_[last + 1] += count - first_of_last;
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  if (is_sorted) {
    std::swap(unsorted_, hashes_);
    std::iota(positions_.begin(), positions_.end(), 0);
    return;
  }
  std::array<uint32_t, kRowStripes + 1> next = begin_;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t place = next[StripeOf(unsorted_[i])]++;
    hashes_[place] = unsorted_[i];
    positions_[place] = i;
  }
}

}  // namespace parasol
