#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_OWNER_PLAN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_OWNER_PLAN_H_

#include <vector>

#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

// The place of a replica's contribution: `index` among the contributions of
// `rank`.
struct OrderedReplica {
  int rank = 0;
  int index = 0;
};

// Returns the places of all replicas, in ascending order of the replicas.
std::vector<OrderedReplica> InOrder(const ReplicaLayout& layout);

enum class OwnerResult { kAllSlices, kOwnSlice };

// Returns the rank's plan of ReductionAlgorithm::kOwnerSlices. With kOwnSlice
// the sums' buffer begins with the rank's slice, and sums go nowhere else.
CollectivePlan OwnerSlicesPlan(const Reduction& reduction, int rank,
                               OwnerResult result);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_OWNER_PLAN_H_
