#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_COPY_PLANS_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_COPY_PLANS_H_

#include <cstddef>
#include <vector>

#include "cluster/collective/plan/plan.h"

namespace parasol {

// Returns what `rank` does so that all ranks have the bytes of all ranks, which
// are sizes[r] of rank r. There is a buffer for the bytes of each rank; the own
// ones are in theirs.
CollectivePlan AllGatherPlan(const std::vector<size_t>& sizes, int rank,
                             size_t chunk_bytes);

// Returns what `rank` does so that `bytes` bytes of rank `source`, which is
// none of `receivers`, reach all of these. There is one buffer. Large ones
// travel from one receiver to the next, chunk by chunk.
CollectivePlan BroadcastPlan(int source, const std::vector<int>& receivers,
                             size_t bytes, int rank, size_t chunk_bytes);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_COPY_PLANS_H_
