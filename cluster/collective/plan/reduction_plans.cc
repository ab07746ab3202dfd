#include "cluster/collective/plan/reduction_plans.h"

#include <algorithm>
#include <utility>

#include "cluster/collective/plan/chain_plan.h"
#include "cluster/collective/plan/owner_plan.h"

namespace parasol {
namespace {

// Bytes that a rank may send in one round: less than what a message time costs.
constexpr size_t kOneRoundBytes = 64 << 10;

// Returns the number of replicas of the rank that has most.
size_t MostReplicas(const ReplicaLayout& layout) {
  size_t most = 0;
  for (const std::vector<int>& replicas : layout) {
    most = std::max(most, replicas.size());
  }
  return most;
}

Plan OneRoundPlan(const Reduction& reduction, int rank) {
  const ReplicaLayout& layout = reduction.layout;
  const size_t bytes = reduction.count * sizeof(float);
  const int own = static_cast<int>(layout[rank].size());
  const int ranks = static_cast<int>(layout.size());
  Plan plan;
  std::vector<int> before;
  for (int i = 0; i < own; ++i) {
    for (int d = 1; d < ranks; ++d) {
      before.push_back(plan.Send((rank + d) % ranks, i, {i, 0, bytes}));
    }
  }
  std::vector<Region> addends;
  for (const OrderedReplica& replica : InOrder(layout)) {
    if (replica.rank == rank) {
      addends.push_back({replica.index, 0, bytes});
      continue;
    }
    addends.push_back({own + 1, plan.scratch_bytes, bytes});
    before.push_back(plan.Receive(replica.rank, replica.index, addends.back()));
    plan.scratch_bytes += bytes;
  }
  // The sums may take the place of what is sent.
  plan.Sum({own, 0, bytes}, std::move(addends), before);
  return plan;
}

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
  if (bytes * most * (ranks - 1) <= kOneRoundBytes) {
    return ReductionAlgorithm::kOneRound;
  }
  // What the busiest rank sends and receives, in units of bytes / ranks.
  const size_t replicas = InOrder(reduction.layout).size();
  const size_t owner = most * (ranks - 1) + (replicas - most) + 2 * (ranks - 1);
  const size_t chain = ChainTraffic(reduction.layout) * ranks;
  return owner <= chain ? ReductionAlgorithm::kOwnerSlices
                        : ReductionAlgorithm::kChain;
}

Plan AllReducePlan(const Reduction& reduction, ReductionAlgorithm algorithm,
                   int rank) {
  switch (algorithm) {
    case ReductionAlgorithm::kOwnerSlices:
      return OwnerSlicesPlan(reduction, rank, OwnerResult::kAllSlices);
    case ReductionAlgorithm::kChain:
      return ChainPlan(reduction, rank);
    case ReductionAlgorithm::kOneRound:
      break;
  }
  return OneRoundPlan(reduction, rank);
}

Plan ReduceScatterPlan(const Reduction& reduction, int rank) {
  return OwnerSlicesPlan(reduction, rank, OwnerResult::kOwnSlice);
}

}  // namespace parasol
