#ifndef PARASOL_TESTS_SIMULATION_GROUP_STAR_PLANNER_H_
#define PARASOL_TESTS_SIMULATION_GROUP_STAR_PLANNER_H_

#include <string>

#include "cluster/collective/plan/all_reduce_planner.h"

namespace parasol::simulation {

// An all-reduce as a user may write it: rank 0 gets all contributions, adds
// them in ascending order of the replicas, and sends the sums to all.
class StarPlanner : public AllReducePlanner {
 public:
  std::string name() const override { return "star"; }
  CollectivePlan AllReduce(const Reduction& reduction, int rank) const override;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_STAR_PLANNER_H_
