#include "tests/simulation/group/star_planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/collective/plan/owner_plan.h"

namespace parasol::simulation {
namespace {

// Number of the message that carries a chunk's sums; a contribution's message
// has the contribution's index.
constexpr uint64_t kSums = 1 << 16;

// Makes the plan of one rank, chunk by chunk.
class StarRank {
 public:
  StarRank(const Reduction& reduction, int rank)
      : layout_(reduction.layout),
        rank_(rank),
        own_(static_cast<int>(layout_[rank].size())) {
    const size_t bytes = reduction.count * sizeof(float);
    const size_t chunk = reduction.chunk_bytes;
    for (size_t first = 0; first < bytes; first += chunk) {
      const Region sums = {own_, first, std::min(chunk, bytes - first)};
      const uint64_t number = (first / chunk) << 32;
      rank == 0 ? AddAll(sums, number) : Contribute(sums, number);
    }
  }

  CollectivePlan Take() { return std::move(plan_); }

 private:
  void AddAll(const Region& sums, uint64_t number) {
    std::vector<Region> addends;
    std::vector<int> received;
    for (const OrderedReplica& replica : InOrder(layout_)) {
      if (replica.rank == rank_) {
        addends.push_back({replica.index, sums.first, sums.bytes});
        continue;
      }
      addends.push_back({own_ + 1, plan_.scratch_bytes, sums.bytes});
      plan_.scratch_bytes += sums.bytes;
      received.push_back(
          plan_.Receive(replica.rank, number + replica.index, addends.back()));
    }
    const int added = plan_.Sum(sums, std::move(addends), received);
    for (size_t to = 1; to < layout_.size(); ++to) {
      plan_.Send(static_cast<int>(to), number + kSums, sums, {added});
    }
  }

  // The sums may take a contribution's place: they come when rank 0 has got it.
  void Contribute(const Region& sums, uint64_t number) {
    for (int i = 0; i < own_; ++i) {
      plan_.Send(0, number + i, {i, sums.first, sums.bytes});
    }
    plan_.Receive(0, number + kSums, sums);
  }

  const ReplicaLayout& layout_;
  const int rank_;
  const int own_;
  CollectivePlan plan_;
};

}  // namespace

CollectivePlan StarPlanner::AllReduce(const Reduction& reduction,
                                      int rank) const {
  return StarRank(reduction, rank).Take();
}

}  // namespace parasol::simulation
