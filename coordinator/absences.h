#ifndef PARASOL_COORDINATOR_ABSENCES_H_
#define PARASOL_COORDINATOR_ABSENCES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/membership.h"
#include "coordinator/task_id.h"
#include "proto/chief.pb.h"

// The tasks that a job can't do without and that are not there. Pure.
namespace parasol {

struct AbsenceLimits {
  // Time for which a missing ps, or the absence of all workers, is borne.
  absl::Duration ps;
  absl::Duration workers;
};

// Returns a task's name in messages.
using TaskName = std::function<std::string(const TaskId&)>;

// Returns the tasks that a job in `phase` waits for: each ps that is not alive,
// and in training all workers if none is alive. With `needs_all_workers` also
// each worker that is not alive.
std::vector<TaskId> MissingTasks(const Membership& membership,
                                 wire::JobPhase phase, bool needs_all_workers);

// Returns the workers and evaluators that were lost, or that have been absent
// for `limit` or longer of the training since `training_since`.
std::vector<TaskId> DispensableTasks(const Membership& membership,
                                     absl::Duration limit,
                                     absl::Time training_since, absl::Time now);

// Returns OK while no absence of these tasks has lasted longer than its limit.
// `phase_since` is the time at which the phase began.
//   Unavailable  the message names the tasks.
absl::Status CheckAbsences(const Membership& membership, wire::JobPhase phase,
                           bool needs_all_workers, absl::Time phase_since,
                           const AbsenceLimits& limits, const TaskName& name_of,
                           absl::Time now);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_ABSENCES_H_
