#include "cluster/collective/plan/reduction_plans.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "cluster/collective/plan/chain_plan.h"
#include "cluster/collective/plan/owner_plan.h"

namespace parasol {
namespace {

// Bytes that a rank may send in one round: less than what a message time costs.
constexpr size_t kOneRoundBytes = 192 << 10;
// Bytes that a link between machines, of some Gb/s, sends in a message time.
constexpr size_t kLinkBytes = 32 << 10;
// Bytes of a pack from which on ranks of one machine add along a chain: what
// comes is added while it is in the cache.
constexpr size_t kLocalChainBytes = 4 << 20;
// Bytes of a pack from which on two ranks of one machine add half of it each:
// what the other adds costs less than a second message time.
constexpr size_t kLocalHalvesBytes = 512 << 10;

// Returns the number of replicas of the rank that has most.
size_t MostReplicas(const ReplicaLayout& layout) {
  size_t most = 0;
  for (const std::vector<int>& replicas : layout) {
    most = std::max(most, replicas.size());
  }
  return most;
}

// Returns the reduction as if each rank had a machine of its own.
Reduction OfRanks(const Reduction& reduction) {
  return {.layout = reduction.layout,
          .count = reduction.count,
          .chunk_bytes = reduction.chunk_bytes};
}

// Returns the algorithm that is done first, as far as the link of the busiest
// machine and the messages that follow each other say, if some ranks share
// machines and others do not.
ReductionAlgorithm ChooseBetweenMachines(
    const Reduction& reduction, const std::vector<std::vector<int>>& machines) {
  const size_t ranks = reduction.layout.size();
  const size_t bytes = reduction.count * sizeof(float);
  const size_t replicas = InOrder(reduction.layout).size();
  size_t contributions = 0;  // that the busiest one sends and receives, to all
  size_t sums = 0;           // slices of sums
  for (const std::vector<int>& machine : machines) {
    size_t own = 0;
    for (const int rank : machine) own += reduction.layout[rank].size();
    const size_t others = ranks - machine.size();
    contributions = std::max(contributions,
                             own * others + (replicas - own) * machine.size());
    sums = std::max(sums, 2 * machine.size() * others);
  }
  // A link sends while it receives.
  const auto cost = [](size_t traffic, size_t message_times) {
    return traffic / 2 + message_times * kLinkBytes;
  };
  const size_t one_round = cost(contributions * bytes, 1);
  const size_t owner = cost((contributions + sums) * bytes / ranks, 2);
  const size_t chain =
      cost(ChainTraffic(reduction) * bytes, 2 * machines.size());
  if (one_round <= std::min(owner, chain)) return ReductionAlgorithm::kOneRound;
  return owner <= chain ? ReductionAlgorithm::kOwnerSlices
                        : ReductionAlgorithm::kMachines;
}

// Makes the plan of one rank in one round, chunk by chunk.
class OneRoundPlanner {
 public:
  OneRoundPlanner(const Reduction& reduction, int rank)
      : layout_(reduction.layout),
        order_(InOrder(layout_)),
        rank_(rank),
        ranks_(static_cast<int>(layout_.size())),
        own_(static_cast<int>(layout_[rank].size())) {
    const size_t bytes = reduction.count * sizeof(float);
    const size_t chunk = reduction.chunk_bytes;
    for (size_t first = 0; first < bytes; first += chunk) {
      MakeChunk(first, std::min(chunk, bytes - first), first / chunk);
    }
  }

  CollectivePlan Take() { return std::move(plan_); }

 private:
  void MakeChunk(size_t first, size_t bytes, uint64_t chunk) {
    std::vector<int> before;
    for (int i = 0; i < own_; ++i) {
      for (int d = 1; d < ranks_; ++d) {
        before.push_back(plan_.Send((rank_ + d) % ranks_, PieceOf(i, chunk),
                                    {i, first, bytes}));
      }
    }
    std::vector<Region> addends;
    for (const OrderedReplica& replica : order_) {
      if (replica.rank == rank_) {
        addends.push_back({replica.index, first, bytes});
        continue;
      }
      addends.push_back({own_ + 1, plan_.scratch_bytes, bytes});
      before.push_back(plan_.Receive(
          replica.rank, PieceOf(replica.index, chunk), addends.back()));
      plan_.scratch_bytes += bytes;
    }
    // The sums may take the place of what is sent.
    plan_.Sum({own_, first, bytes}, std::move(addends), before);
  }

  static uint64_t PieceOf(int index, uint64_t chunk) {
    return (static_cast<uint64_t>(index) << 32) + chunk;
  }

  const ReplicaLayout& layout_;
  const std::vector<OrderedReplica> order_;
  const int rank_;
  const int ranks_;
  const int own_;
  CollectivePlan plan_;
};

}  // namespace

std::vector<OrderedReplica> InOrder(const ReplicaLayout& layout) {
  std::vector<std::pair<int, OrderedReplica>> numbered;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    for (size_t i = 0; i < layout[rank].size(); ++i) {
      numbered.push_back(
          {layout[rank][i], {static_cast<int>(rank), static_cast<int>(i)}});
    }
  }
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<OrderedReplica> ordered;
  for (const auto& [replica, place] : numbered) ordered.push_back(place);
  return ordered;
}

ReductionAlgorithm ChooseReduction(const Reduction& reduction) {
  const size_t ranks = reduction.layout.size();
  const size_t most = MostReplicas(reduction.layout);
  const size_t bytes = reduction.count * sizeof(float);
  const std::vector<std::vector<int>> machines = RanksOfMachines(reduction);
  if (machines.size() > 1 && machines.size() < ranks) {
    return ChooseBetweenMachines(reduction, machines);
  }
  if (bytes * most * (ranks - 1) <= kOneRoundBytes) {
    return ReductionAlgorithm::kOneRound;
  }
  const size_t chain = ChainTraffic(OfRanks(reduction)) * ranks;
  // With as many bytes on the way, one machine's caches decide.
  if (machines.size() == 1 && ranks == 2 && most == 1) {
    return bytes >= kLocalHalvesBytes ? ReductionAlgorithm::kOwnerSlices
                                      : ReductionAlgorithm::kOneRound;
  }
  if (machines.size() == 1 && bytes >= kLocalChainBytes) {
    return ReductionAlgorithm::kChain;
  }
  // What the busiest rank sends and receives, in units of bytes / ranks.
  const size_t replicas = InOrder(reduction.layout).size();
  const size_t round = (most * (ranks - 1) + (replicas - most)) * ranks;
  const size_t owner = most * (ranks - 1) + (replicas - most) + 2 * (ranks - 1);
  if (round <= owner && round <= chain) return ReductionAlgorithm::kOneRound;
  return owner <= chain ? ReductionAlgorithm::kOwnerSlices
                        : ReductionAlgorithm::kChain;
}

CollectivePlan AllReducePlan(const Reduction& reduction,
                             ReductionAlgorithm algorithm, int rank) {
  switch (algorithm) {
    case ReductionAlgorithm::kOwnerSlices:
      return OwnerSlicesPlan(reduction, rank, OwnerResult::kAllSlices);
    case ReductionAlgorithm::kChain:
      return ChainPlan(OfRanks(reduction), rank);
    case ReductionAlgorithm::kMachines:
      return ChainPlan(reduction, rank);
    case ReductionAlgorithm::kOneRound:
      break;
    case ReductionAlgorithm::kPlanner:
      LOG(FATAL) << "a planner's plan is made by the planner";
  }
  return OneRoundPlanner(reduction, rank).Take();
}

CollectivePlan ReduceScatterPlan(const Reduction& reduction, int rank) {
  return OwnerSlicesPlan(reduction, rank, OwnerResult::kOwnSlice);
}

}  // namespace parasol
