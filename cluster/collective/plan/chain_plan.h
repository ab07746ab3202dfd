#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_

#include <cstddef>

#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

// Returns the rank's plan of ReductionAlgorithm::kChain.
CollectivePlan ChainPlan(const Reduction& reduction, int rank);

// Returns how often the busiest rank sends or receives the whole pack in it.
size_t ChainTraffic(const ReplicaLayout& layout);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_
