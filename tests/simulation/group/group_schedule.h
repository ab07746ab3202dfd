#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_SCHEDULE_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_SCHEDULE_H_

#include <cstdint>

#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// Returns the schedule of a seed for workers that have the variables. A third
// have faults that meet within a short time, a third have one at a point of the
// groups' protocol and others soon after.
Schedule DrawGroupSchedule(uint64_t seed);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_SCHEDULE_H_
