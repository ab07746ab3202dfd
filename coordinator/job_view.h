#ifndef PARASOL_COORDINATOR_JOB_VIEW_H_
#define PARASOL_COORDINATOR_JOB_VIEW_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/job_phases.h"
#include "coordinator/membership.h"
#include "coordinator/orders.h"
#include "coordinator/shards/shard_board.h"
#include "coordinator/steps/run_evaluations.h"
#include "coordinator/steps/step_grants.h"
#include "coordinator/task_id.h"

namespace parasol {

// The parts of a coordinator, for those who ask how the job goes.
struct JobView {
  const CoordinatorOptions& options;
  const Membership& membership;
  const ShardBoard& board;
  const StepGrants& grants;
  const JobPhases& phases;
  const RunEvaluations& evaluations;
  const Orders& orders;
  // The job as grants go by it.
  StepGrants::Look look;
  // True while the job can't begin without all workers.
  bool needs_all_workers = false;
  // The time of the chief's last tick.
  absl::Time last_tick;
};

// Returns the tasks that have not left, when the job has ended.
std::vector<TaskId> StayingTasks(const CoordinatorOptions& options,
                                 const Membership& membership);

// Return names for people, each once: of absent tasks that the job can't do
// without; of the tasks for which workers wait that are granted nothing; of the
// tasks that have yet to leave a job that has ended.
std::vector<std::string> MissingTaskNames(const JobView& job);
std::vector<std::string> AwaitedTaskNames(const JobView& job);
std::vector<std::string> StayingTaskNames(const JobView& job);

// Returns what keeps the chief from going on.
Trouble TroubleOf(const JobView& job);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_JOB_VIEW_H_
