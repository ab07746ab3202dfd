#include "ml/input/record/block_cache.h"

#include <algorithm>
#include <utility>

namespace parasol {

const std::string* RecordBlock::WhyBroken(int64_t record) const {
  if (broken.empty()) return nullptr;
  const auto place = static_cast<size_t>(record - first_record);
  const auto found = std::lower_bound(
      broken.begin(), broken.end(), place,
      [](const auto& one, size_t wanted) { return one.first < wanted; });
  const bool is_broken = found != broken.end() && found->first == place;
  return is_broken ? &found->second : nullptr;
}

absl::StatusOr<std::shared_ptr<const RecordBlock>> BlockCache::Get(
    size_t number, absl::FunctionRef<absl::StatusOr<RecordBlock>()> load) {
  if (auto block = Find(number)) return block;
  absl::StatusOr<RecordBlock> loaded = load();
  if (!loaded.ok()) {
    absl::MutexLock lock(&mu_);
    entries_[number].is_loading = false;
    return loaded.status();
  }
  auto block = std::make_shared<const RecordBlock>(*std::move(loaded));
  Keep(number, block);
  return block;
}

std::shared_ptr<const RecordBlock> BlockCache::Find(size_t number) {
  absl::MutexLock lock(&mu_);
  if (number >= entries_.size()) entries_.resize(number + 1);
  if (entries_[number].is_loading) {
    const auto is_done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !entries_[number].is_loading;
    };
    mu_.Await(absl::Condition(&is_done));
  }
  Entry& entry = entries_[number];
  entry.is_loading = entry.block == nullptr;
  // Not written again and again: other processors have it, too.
  if (!entry.is_used) entry.is_used = true;
  return entry.block;
}

void BlockCache::Keep(size_t number, std::shared_ptr<const RecordBlock> block) {
  // Freed without the lock.
  std::vector<std::shared_ptr<const RecordBlock>> dropped;
  absl::MutexLock lock(&mu_);
  ++loads_;
  bytes_ += block->memory_bytes();
  entries_[number] = {.block = std::move(block)};
  order_.push_back(number);
  while (bytes_ > most_bytes_ && order_.size() > 1) {
    const size_t next = order_.front();
    order_.pop_front();
    Entry& entry = entries_[next];
    if (std::exchange(entry.is_used, false) || next == number) {
      order_.push_back(next);
      continue;
    }
    bytes_ -= entry.block->memory_bytes();
    dropped.push_back(std::move(entry.block));
  }
}

void BlockCache::KeepAtMost(size_t bytes) {
  absl::MutexLock lock(&mu_);
  most_bytes_ = bytes;
}

int64_t BlockCache::loads() const {
  absl::MutexLock lock(&mu_);
  return loads_;
}

}  // namespace parasol
