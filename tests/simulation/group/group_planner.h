#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_

#include <memory>

#include "cluster/collective/plan/all_reduce_planner.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// Returns the planner of a group's all-reduces; null: their size chooses. The
// tree is the users' example.
std::shared_ptr<const AllReducePlanner> PlannerOf(const Shape& shape);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_PLANNER_H_
