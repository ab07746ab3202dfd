#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_

#include <memory>
#include <optional>

#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/reduction_plans.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// Returns the planner of a group's all-reduces; null: there is none. The tree
// is the users' example.
std::shared_ptr<const AllReducePlanner> PlannerOf(const Shape& shape);

// Returns the algorithm of all of them; nullopt: their size or a planner
// chooses.
std::optional<ReductionAlgorithm> AlgorithmOf(const Shape& shape);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_
