#include "ml/input/topic/record_merge.h"

#include <functional>
#include <queue>
#include <utility>

namespace parasol {

std::vector<PlacedRecord> Merged(
    const std::vector<std::vector<PlacedRecord>>& partitions) {
  using Next = std::pair<int64_t, size_t>;  // time, partition
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  std::vector<size_t> at(partitions.size());
  std::vector<PlacedRecord> merged;
  const auto add = [&](size_t i) {
    if (at[i] == partitions[i].size()) return;
    next.emplace(partitions[i][at[i]].milliseconds, i);
  };
  for (size_t i = 0; i < partitions.size(); ++i) add(i);
  while (!next.empty()) {
    const size_t i = next.top().second;
    next.pop();
    merged.push_back(partitions[i][at[i]++]);
    add(i);
  }
  return merged;
}

}  // namespace parasol
