#include "cluster/check/value_counts.h"

#include <algorithm>

namespace parasol {

void ValueCounts::Add(absl::string_view value) {
  ++all_;
  const auto known = counts_.find(value);
  if (known != counts_.end()) {
    ++known->second;
  } else if (counts_.size() < max_values_ && value.size() <= kMaxBytes) {
    counts_.emplace(value, 1);
  } else {
    ++others_;
  }
}

int64_t ValueCounts::CountOf(absl::string_view value) const {
  const auto known = counts_.find(value);
  return known == counts_.end() ? 0 : known->second;
}

int64_t ValueCounts::SeenOnce() const {
  return std::count_if(counts_.begin(), counts_.end(),
                       [](const auto& entry) { return entry.second == 1; });
}

std::vector<ValueCounts::Entry> ValueCounts::MostFrequent(size_t most) const {
  std::vector<Entry> entries(counts_.begin(), counts_.end());
  const size_t kept = std::min(most, entries.size());
  std::partial_sort(
      entries.begin(), entries.begin() + static_cast<int64_t>(kept),
      entries.end(), [](const Entry& a, const Entry& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
      });
  entries.resize(kept);
  return entries;
}

}  // namespace parasol
