#include "chief/batch_pool.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace parasol {

void BatchPool::SetShards(const std::vector<int64_t>& shard_batches) {
  if (shard_batches.size() <= 1 || !shards_.empty()) return;
  for (const int64_t batches : shard_batches) {
    shards_.push_back({.first = batches_per_epoch_, .batches = batches});
    batches_per_epoch_ += batches;
  }
  int64_t taken = std::exchange(taken_, taken_ - taken_ % batches_per_epoch_) %
                  batches_per_epoch_;
  while (taken-- > 0) Take(0);
}

int64_t BatchPool::Take(int shard) {
  if (!returned_.empty()) {
    const int64_t batch = *returned_.begin();
    returned_.erase(returned_.begin());
    return batch;
  }
  if (shards_.empty()) return taken_++;
  const int64_t epoch = taken_ / batches_per_epoch_;
  if (taken_++ % batches_per_epoch_ == 0) {
    for (Shard& s : shards_) s.taken = 0;
  }
  const auto left = [](const Shard& s) { return s.batches - s.taken; };
  const bool is_known =
      shard >= 0 && static_cast<size_t>(shard) < shards_.size();
  Shard* from = is_known ? &shards_[shard] : &shards_.front();
  if (left(*from) == 0) {
    from = &*std::max_element(
        shards_.begin(), shards_.end(),
        [&left](const Shard& a, const Shard& b) { return left(a) < left(b); });
  }
  return epoch * batches_per_epoch_ + from->first + from->taken++;
}

}  // namespace parasol
