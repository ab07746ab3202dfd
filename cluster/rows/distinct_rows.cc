#include "cluster/rows/distinct_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

namespace parasol {
namespace {

constexpr size_t kMinSlots = 64;
// Slots per id: so sparse that the first probe nearly always decides, and its
// branch is predicted.
constexpr size_t kSlotsPerId = 8;

void Add(const std::byte* gradient, size_t width, float* sum) {
  for (size_t i = 0; i < width; ++i) {
    float value;
    std::memcpy(&value, gradient + i * sizeof(float), sizeof(float));
    sum[i] += value;
  }
}

}  // namespace

void DistinctRows::Assign(const StripedIds::Run& run) {
  run_ = run;
  rows_ = run;
  numbers_.clear();
  const size_t count = run.hashes.size();
  seen_.assign(std::bit_ceil(std::max(kMinSlots, kSlotsPerId * count)), 0);
  // Copies, which no store can change.
  const uint64_t* const hashes = run.hashes.data();
  uint32_t* const seen = seen_.data();
  const size_t mask = seen_.size() - 1;
  for (size_t i = 0; i < count; ++i) {
    size_t slot = hashes[i] & mask;
    for (; seen[slot] != 0; slot = (slot + 1) & mask) {
      if (hashes[seen[slot] - 1] == hashes[i]) return AssignWithDuplicate(i);
    }
    seen[slot] = i + 1;
  }
}

// Ids before `first` are distinct; the id at `first` is one of them.
void DistinctRows::AssignWithDuplicate(size_t first) {
  const size_t count = run_.hashes.size();
  hashes_.assign(run_.hashes.begin(), run_.hashes.begin() + first);
  positions_.assign(run_.positions.begin(), run_.positions.begin() + first);
  numbers_.resize(count);
  std::iota(numbers_.begin(), numbers_.begin() + first, 0);
  rows_ = {hashes_, positions_};
  for (size_t i = first; i < count; ++i) {
    uint32_t& seen = SlotOf(run_.hashes[i]);
    if (seen == 0) {
      hashes_.push_back(run_.hashes[i]);
      positions_.push_back(run_.positions[i]);
      rows_ = {hashes_, positions_};
      seen = hashes_.size();
    }
    numbers_[i] = seen - 1;
  }
}

uint32_t& DistinctRows::SlotOf(uint64_t hash) {
  const size_t mask = seen_.size() - 1;
  size_t slot = hash & mask;
  while (seen_[slot] != 0 && rows_.hashes[seen_[slot] - 1] != hash) {
    slot = (slot + 1) & mask;
  }
  return seen_[slot];
}

absl::Span<const std::byte* const> DistinctRows::Sum(const std::byte* gradients,
                                                     size_t width) {
  const size_t row_bytes = width * sizeof(float);
  const size_t count = run_.size();
  sum_of_.resize(rows_.size());
  const std::byte** const sum_of = sum_of_.data();
  const uint32_t* const positions = run_.positions.data();
  if (numbers_.empty()) {
    for (size_t i = 0; i < count; ++i) {
      sum_of[i] = gradients + positions[i] * row_bytes;
    }
    return sum_of_;
  }
  sums_.resize(std::min(count - rows_.size(), rows_.size()) * width);
  float* next_sum = sums_.data();
  const auto is_sum = [&](const std::byte* address) {
    const auto* const begin = reinterpret_cast<const std::byte*>(sums_.data());
    return !std::less<>()(address, begin) &&
           std::less<>()(address, begin + sums_.size() * sizeof(float));
  };
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const gradient = gradients + positions[i] * row_bytes;
    const std::byte*& sum = sum_of[numbers_[i]];
    if (numbers_[i] == next) {
      sum = gradient;
      ++next;
      continue;
    }
    if (!is_sum(sum)) {
      std::memcpy(next_sum, sum, row_bytes);
      sum = reinterpret_cast<const std::byte*>(next_sum);
      next_sum += width;
    }
    // One of sums_.
    Add(gradient, width, reinterpret_cast<float*>(const_cast<std::byte*>(sum)));
  }
  return sum_of_;
}

absl::Span<const uint32_t> DistinctRows::Counts(const std::byte* counts) {
  counts_.assign(rows_.size(), 0);
  for (size_t i = 0; i < run_.size(); ++i) {
    uint32_t count = 1;
    if (counts != nullptr) {
      std::memcpy(&count, counts + run_.positions[i] * sizeof(count),
                  sizeof(count));
    }
    uint32_t& sum = counts_[numbers_.empty() ? i : numbers_[i]];
    sum += std::min(std::max(count, 1u), UINT32_MAX - sum);
  }
  return counts_;
}

void DistinctRows::CopyToRepeated(size_t width, float* rows) const {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const uint32_t first = rows_.positions[numbers_[i]];
    const uint32_t position = run_.positions[i];
    if (position == first) continue;
    std::copy_n(rows + first * width, width, rows + position * width);
  }
}

}  // namespace parasol
