#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_REDUCTION_PLANS_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_REDUCTION_PLANS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/collective/plan/plan.h"

namespace parasol {

// The replicas whose contributions each rank brings, ascending.
using ReplicaLayout = std::vector<std::vector<int>>;

// How sums over ranks are taken. P ranks, a pack of S bytes.
enum class ReductionAlgorithm {
  // Everybody sends its contributions to all and adds all itself: one message
  // time, but (P - 1) S bytes for each replica. The best for two ranks with a
  // replica each.
  kOneRound,
  // Rank r adds slice r of all contributions and sends it to all: two message
  // times, 2 S (P - 1) / P bytes with one replica in each rank.
  kOwnerSlices,
  // Partial sums travel along the ranks in the replicas' order, chunk by chunk,
  // and the sums back: P message times for the first chunk, 2 S bytes however
  // many neighbouring replicas a rank has.
  kChain,
  // Whatever plan an AllReducePlanner makes.
  kPlanner,
  // The ranks of a machine add a slice of their contributions each, partial
  // sums travel along the machines in the replicas' order, and the sums back:
  // with neighbouring replicas a machine sends 2 S bytes at most to others,
  // however many ranks it has.
  kMachines,
};

// A reduction, as all its ranks see it.
struct Reduction {
  ReplicaLayout layout;
  size_t count = 0;  // elements
  // Bytes of one message, at most; a multiple of 4.
  size_t chunk_bytes = 256 << 10;
  // The number of each rank's machine; empty: each has one of its own. Planners
  // are not told.
  std::vector<int> machines = {};
};

// Returns the algorithm that suits the layout and the size: one for all ranks.
ReductionAlgorithm ChooseReduction(const Reduction& reduction);

// The plans below have a buffer for each of the rank's contributions, then one
// for the sums and one for scratch. The sums may have a contribution's buffer.

// Returns what `rank` does so that all ranks have the sums.
CollectivePlan AllReducePlan(const Reduction& reduction,
                             ReductionAlgorithm algorithm, int rank);

// Returns what `rank` does so that it has the sums of its slice.
CollectivePlan ReduceScatterPlan(const Reduction& reduction, int rank);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_REDUCTION_PLANS_H_
