#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_

#include <cstddef>
#include <vector>

#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

// Returns the rank's plan along a chain of the machines: of the ranks, if
// Reduction::machines is empty.
CollectivePlan ChainPlan(const Reduction& reduction, int rank);

// Returns how often the machine with the busiest link sends or receives the
// whole pack in it.
size_t ChainTraffic(const Reduction& reduction);

// Returns the ranks of each machine that Reduction::machines tells of.
std::vector<std::vector<int>> RanksOfMachines(const Reduction& reduction);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_CHAIN_PLAN_H_
