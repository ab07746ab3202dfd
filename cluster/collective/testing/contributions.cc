#include "cluster/collective/testing/contributions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

namespace parasol {

std::vector<Layout> TestLayouts(int max_ranks) {
  std::vector<Layout> layouts;
  for (int ranks = 1; ranks <= max_ranks; ++ranks) {
    Layout one(ranks), pairs(ranks), mixed(ranks), down(ranks), some(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      one[rank] = {rank};
      pairs[rank] = {2 * rank, 2 * rank + 1};
      mixed[rank] = {rank, ranks + rank};
      down[rank] = {10 * (ranks - rank)};
      for (int i = 0; i < (rank * 5 + 1) % 4; ++i) {
        some[rank].push_back(i * ranks + (rank * 3) % ranks);
      }
    }
    // A stride that hits a number twice would give a replica two ranks.
    for (int rank = 0; rank < ranks; ++rank) {
      for (int& replica : some[rank]) replica = replica * 16 + rank;
    }
    layouts.insert(layouts.end(), {one, pairs, mixed, down, some});
  }
  return layouts;
}

std::vector<float> ContributionOf(int replica, int pack, size_t count) {
  std::mt19937 random(replica * 7919 + pack * 104729 + 1);
  std::vector<float> values(count);
  for (float& value : values) {
    const uint32_t bits = random();
    value = std::ldexp(static_cast<float>(bits & 0xffffff) - 0x800000,
                       static_cast<int>(bits >> 27) - 30);
  }
  return values;
}

std::vector<float> SerialSum(const Layout& layout, int pack, size_t count) {
  std::vector<int> replicas;
  for (const std::vector<int>& own : layout) {
    replicas.insert(replicas.end(), own.begin(), own.end());
  }
  std::sort(replicas.begin(), replicas.end());
  std::vector<float> sum(count);
  for (size_t k = 0; k < replicas.size(); ++k) {
    const std::vector<float> next = ContributionOf(replicas[k], pack, count);
    for (size_t i = 0; i < count; ++i)
      sum[i] = k == 0 ? next[i] : sum[i] + next[i];
  }
  return sum;
}

bool HasBits(absl::Span<const float> got, absl::Span<const float> want) {
  return got.size() == want.size() &&
         (got.empty() ||
          std::memcmp(got.data(), want.data(), want.size() * 4) == 0);
}

}  // namespace parasol
