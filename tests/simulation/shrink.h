#ifndef PARASOL_TESTS_SIMULATION_SHRINK_H_
#define PARASOL_TESTS_SIMULATION_SHRINK_H_

#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/auditor.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// Runs a schedule, and returns the first violation.
using ScheduleRun = std::function<std::optional<Violation>(const Schedule&)>;

// Returns a schedule with as few faults as possible, as short ones and as small
// a job as possible, that still violates the invariant `kind`, as `schedule`
// does.
Schedule Shrink(Schedule schedule, const ScheduleRun& run,
                const std::string& kind);
// Does it for schedules of ControlPlane.
Schedule Shrink(Schedule schedule, const Rules& rules, const std::string& kind);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SHRINK_H_
