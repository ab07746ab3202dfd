#include "coordinator/steps/batch_pool.h"

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
  BatchSpans returned = std::exchange(returned_, {});
  int64_t taken = taken_ % batches_per_epoch_;
  taken_ -= taken;
  while (taken-- > 0) Take(0);
  returned_ = std::move(returned);
  if (taken_ == 0 || taken_ % batches_per_epoch_ != 0) return;
  // What Left() has added of an epoch is next in each shard, not returned.
  const int64_t begin = taken_ - batches_per_epoch_;
  for (Shard& shard : shards_) {
    const int64_t first = begin + shard.first;
    const int64_t left = returned_.RemoveTail(first, first + shard.batches);
    shard.taken = shard.batches - left;
    taken_ -= left;
  }
}

int64_t BatchPool::Take(int shard) {
  if (!returned_.empty()) {
    const int64_t batch = returned_.smallest();
    returned_.RemoveSmallest(1);
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

void BatchPool::TakeMany(int shard, int64_t count) {
  count -= returned_.RemoveSmallest(count);
  if (shards_.empty()) {
    taken_ += count;
    return;
  }
  for (; count > 0 && taken_ % batches_per_epoch_ != 0; --count) Take(shard);
  taken_ += count - count % batches_per_epoch_;
  for (count %= batches_per_epoch_; count > 0; --count) Take(shard);
}

BatchSpans BatchPool::Left() const {
  BatchSpans left = returned_;
  if (shards_.empty() || taken_ % batches_per_epoch_ == 0) return left;
  const int64_t begin = taken_ - taken_ % batches_per_epoch_;
  for (const Shard& shard : shards_) {
    left.Add(begin + shard.first + shard.taken, shard.batches - shard.taken);
  }
  return left;
}

}  // namespace parasol
