#include "worker/store/table/row_numbers.h"

#include <algorithm>

#include "base/log.h"

namespace parasol {
namespace {

// As in a RowTable's stripes: not all grow together.
constexpr double kMinIndexLoad = .5;
constexpr double kMaxIndexLoad = .75;

// How many index lines are requested ahead.
constexpr size_t kAhead = 32;

using Indexes = absl::Span<const std::unique_ptr<RowIndex>>;

static_assert(RowNumbers::kMissing == static_cast<int32_t>(RowIndex::kNone));

void ProbeAny(Indexes indexes, absl::Span<const uint64_t> hashes,
              int32_t* numbers) {
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) {
      const uint64_t ahead = hashes[i + kAhead];
      indexes[StripeOf(ahead)]->Prefetch(ahead);
    }
    const RowIndex& index = *indexes[StripeOf(hashes[i])];
    numbers[i] = static_cast<int32_t>(index.Find(hashes[i]));
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void ProbeWithAvx2(
    Indexes indexes, absl::Span<const uint64_t> hashes, int32_t* numbers) {
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) {
      const uint64_t ahead = hashes[i + kAhead];
      indexes[StripeOf(ahead)]->Prefetch(ahead);
    }
    const RowIndex& index = *indexes[StripeOf(hashes[i])];
    numbers[i] = static_cast<int32_t>(index.FindWithAvx2(hashes[i]));
  }
}
#endif

}  // namespace

RowNumbers::RowNumbers() {
  for (size_t s = 0; s < kRowStripes; ++s) {
    const double load =
        kMinIndexLoad + (kMaxIndexLoad - kMinIndexLoad) * s / kRowStripes;
    indexes_.push_back(std::make_unique<RowIndex>(arena_, load));
  }
}

void RowNumbers::Probe(absl::Span<const uint64_t> hashes,
                       int32_t* numbers) const {
  for (const uint64_t hash : hashes.first(std::min(kAhead, hashes.size()))) {
    indexes_[StripeOf(hash)]->Prefetch(hash);
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return ProbeWithAvx2(indexes_, hashes, numbers);
  }
#endif
  ProbeAny(indexes_, hashes, numbers);
}

// Most batches lack none.
void RowNumbers::Find(absl::Span<const uint64_t> hashes,
                      absl::Span<int32_t> numbers) {
  CHECK_EQ(hashes.size(), numbers.size());
  missing_.clear();
  auto missing = numbers.begin();
  while (true) {
    missing = std::find(missing, numbers.end(), kMissing);
    if (missing == numbers.end()) return;
    const uint64_t hash = hashes[missing - numbers.begin()];
    *missing = static_cast<int32_t>(IndexOf(hash).Find(hash));
    if (*missing == kMissing) missing_.push_back(RowIdOf(hash));
    ++missing;
  }
}

void RowNumbers::AddMissing(absl::Span<int32_t> numbers) {
  auto next = static_cast<int32_t>(size());
  Add(missing_);
  if (missing_.empty()) return;
  for (int32_t& number : numbers) {
    if (number == kMissing) number = next++;
  }
}

void RowNumbers::Compare(const RowNumbers& other) {
  if (compared_ != &other) same_ = 0;
  compared_ = &other;
  const size_t most = std::min(size(), other.size());
  while (same_ < most && ids_[same_] == other.ids_[same_]) ++same_;
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
  // A checkpoint's ascend already.
  std::vector<uint64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return std::nullopt;
  return *twice;
}

}  // namespace parasol
