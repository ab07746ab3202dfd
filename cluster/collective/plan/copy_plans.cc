#include "cluster/collective/plan/copy_plans.h"

#include <algorithm>
#include <cstdint>

namespace parasol {

CollectivePlan AllGatherPlan(const std::vector<size_t>& sizes, int rank,
                             size_t chunk_bytes) {
  const int ranks = static_cast<int>(sizes.size());
  CollectivePlan plan;
  const auto for_chunks = [&](int owner, const auto& call) {
    for (size_t first = 0; first < sizes[owner]; first += chunk_bytes) {
      call(first / chunk_bytes,
           Region{owner, first, std::min(chunk_bytes, sizes[owner] - first)});
    }
  };
  for_chunks(rank, [&](uint64_t chunk, const Region& region) {
    for (int d = 1; d < ranks; ++d) {
      plan.Send((rank + d) % ranks, chunk, region);
    }
  });
  for (int owner = 0; owner < ranks; ++owner) {
    if (owner == rank) continue;
    for_chunks(owner, [&](uint64_t chunk, const Region& region) {
      plan.Receive(owner, chunk, region);
    });
  }
  return plan;
}

CollectivePlan BroadcastPlan(int source, const std::vector<int>& receivers,
                             size_t bytes, int rank, size_t chunk_bytes) {
  std::vector<int> way = {source};
  way.insert(way.end(), receivers.begin(), receivers.end());
  const size_t place = std::find(way.begin(), way.end(), rank) - way.begin();
  CollectivePlan plan;
  if (place == way.size()) return plan;
  const bool in_one_step = bytes <= chunk_bytes;
  for (size_t first = 0; first < bytes; first += chunk_bytes) {
    const Region region = {0, first, std::min(chunk_bytes, bytes - first)};
    const uint64_t chunk = first / chunk_bytes;
    int have = -1;
    if (place > 0) {
      have = plan.Receive(in_one_step ? source : way[place - 1], chunk, region);
    }
    for (size_t next = place + 1; next < way.size(); ++next) {
      if (in_one_step ? place == 0 : next == place + 1) {
        plan.Send(way[next], chunk, region, {have});
      }
    }
  }
  return plan;
}

}  // namespace parasol
