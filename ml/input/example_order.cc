#include "ml/input/example_order.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"

namespace parasol {
namespace {

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// A number below `bound`. std::uniform_int_distribution would give another one
// with another standard library. Uneven by less than bound / 2^64.
size_t DrawBelow(size_t bound, std::mt19937_64& random) {
  return static_cast<size_t>(
      absl::Uint128High64(absl::uint128(random()) * bound));
}

}  // namespace

void ExampleOrder::StartEpoch(int64_t epoch) {
  std::seed_seq seed{Low(order_.seed), High(order_.seed), Low(order_.shard),
                     Low(epoch), High(epoch)};
  random_.seed(seed);
  next_in_file_ = order_.shard;
  buffer_.clear();
}

std::optional<int64_t> ExampleOrder::Next() {
  if (order_.shuffle_buffer <= 1) return NextInFile();
  while (static_cast<int64_t>(buffer_.size()) < order_.shuffle_buffer) {
    const std::optional<int64_t> example = NextInFile();
    if (!example) break;
    buffer_.push_back(*example);
  }
  if (buffer_.empty()) return std::nullopt;
  std::swap(buffer_[DrawBelow(buffer_.size(), random_)], buffer_.back());
  const int64_t drawn = buffer_.back();
  buffer_.pop_back();
  return drawn;
}

void ExampleOrder::Skip(int64_t examples) {
  if (order_.shuffle_buffer <= 1) {
    const int64_t behind = order_.total - next_in_file_;
    const int64_t left = behind <= 0 ? 0 : (behind - 1) / order_.num_shards + 1;
    next_in_file_ += std::min(examples, left) * order_.num_shards;
    return;
  }
  while (examples-- > 0 && Next()) {
  }
}

std::optional<int64_t> ExampleOrder::NextInFile() {
  if (next_in_file_ >= order_.total) return std::nullopt;
  return std::exchange(next_in_file_, next_in_file_ + order_.num_shards);
}

}  // namespace parasol
