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

int64_t BatchPool::BegunEnd() const {
  const int64_t of_epoch = taken_ % batches_per_epoch_;
  return of_epoch == 0 ? taken_ : taken_ - of_epoch + batches_per_epoch_;
}

void BatchPool::Begin(int64_t open) {
  const int64_t begun = BegunEnd();
  returned_ = Left();
  returned_.Add(begun, open - begun);
  taken_ = open;
  for (Shard& shard : shards_) shard.taken = 0;
}

int64_t BatchPool::TakeOfShard(Shard& shard, int64_t open, int64_t begin,
                               int64_t end) {
  const int64_t were_there = returned_.RemoveAll(begin, end);
  const int64_t next = open + shard.first + shard.taken;
  if (end <= next) return were_there;
  begin = std::max(begin, next);
  returned_.Add(next, begin - next);
  shard.taken += end - next;
  taken_ += end - next;
  return were_there + end - begin;
}

int64_t BatchPool::TakeThese(int64_t first, int64_t count) {
  const int64_t end = first + count;
  if (!shards_.empty()) return TakeOfShards(first, end);
  const int64_t were_there = returned_.RemoveAll(first, end);
  if (end <= taken_) return were_there;
  const int64_t begin = std::max(first, taken_);
  returned_.Add(taken_, begin - taken_);
  taken_ = end;
  return were_there + end - begin;
}

int64_t BatchPool::TakeOfShards(int64_t first, int64_t end) {
  int64_t were_there = 0;
  while (first < end) {
    const int64_t of_epoch = first % batches_per_epoch_;
    const int64_t epoch = first - of_epoch;
    const bool is_new = first >= BegunEnd();
    if (is_new) Begin(epoch);
    if (is_new && of_epoch == 0 && end - first >= batches_per_epoch_) {
      const int64_t whole = end - first - (end - first) % batches_per_epoch_;
      taken_ += whole;
      were_there += whole;
      first += whole;
      continue;
    }
    const auto shard = std::find_if(
        shards_.begin(), shards_.end(),
        [&](const Shard& one) { return of_epoch < one.first + one.batches; });
    const int64_t last = std::min(end, epoch + shard->first + shard->batches);
    // Of an epoch that is not open, all that is left has been returned.
    const bool is_open = is_new || (taken_ % batches_per_epoch_ != 0 &&
                                    epoch + batches_per_epoch_ == BegunEnd());
    were_there += is_open ? TakeOfShard(*shard, epoch, first, last)
                          : returned_.RemoveAll(first, last);
    first = last;
  }
  return were_there;
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
