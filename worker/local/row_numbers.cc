#include "worker/local/row_numbers.h"

#include <algorithm>

#include "base/log.h"

namespace parasol {
namespace {

// As those of a RowTable's stripes: not all grow together.
constexpr double kMinIndexLoad = .5;
constexpr double kMaxIndexLoad = .75;

// How many index lines are requested ahead.
constexpr size_t kAhead = 16;

}  // namespace

RowNumbers::RowNumbers() {
  for (size_t s = 0; s < kRowStripes; ++s) {
    const double load =
        kMinIndexLoad + (kMaxIndexLoad - kMinIndexLoad) * s / kRowStripes;
    indexes_.push_back(std::make_unique<RowIndex>(arena_, load));
  }
}

void RowNumbers::Find(absl::Span<const uint64_t> ids,
                      absl::Span<int32_t> numbers) {
  CHECK_EQ(ids.size(), numbers.size());
  missing_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) {
      const uint64_t ahead = RowHash(ids[i + kAhead]);
      IndexOf(ahead).Prefetch(ahead);
    }
    const uint64_t hash = RowHash(ids[i]);
    uint32_t number = IndexOf(hash).Find(hash);
    if (number == RowIndex::kNone) {
      number = static_cast<uint32_t>(ids_.size() + missing_.size());
      missing_.push_back(ids[i]);
    }
    numbers[i] = static_cast<int32_t>(number);
  }
}

void RowNumbers::Add(absl::Span<const uint64_t> ids) {
  CHECK_LE(ids.size(), kMaxRows - ids_.size());
  for (const uint64_t id : ids) {
    const uint64_t hash = RowHash(id);
    IndexOf(hash).Insert(hash, static_cast<uint32_t>(ids_.size()));
    ids_.push_back(id);
  }
}

std::optional<uint64_t> RowNumbers::FindKnown(absl::Span<const uint64_t> ids) {
  for (const uint64_t id : ids) {
    const uint64_t hash = RowHash(id);
    if (IndexOf(hash).Find(hash) != RowIndex::kNone) return id;
  }
  // Those of a checkpoint ascend already.
  std::vector<uint64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return std::nullopt;
  return *twice;
}

}  // namespace parasol
