#include "cluster/rows/striped_ids.h"

#include <numeric>

namespace parasol {

// A counting sort.
void StripedIds::Assign(const std::byte* ids, size_t count) {
  unsorted_.resize(count);
  hashes_.resize(count);
  positions_.resize(count);
  begin_.fill(0);
  for (size_t i = 0; i < count; ++i) {
    unsorted_[i] = RowHash(LoadId(ids, i));
    ++begin_[StripeOf(unsorted_[i]) + 1];
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::array<uint32_t, kRowStripes + 1> next = begin_;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t place = next[StripeOf(unsorted_[i])]++;
    hashes_[place] = unsorted_[i];
    positions_[place] = i;
  }
}

}  // namespace parasol
