#ifndef PARASOL_DEPLOY_LOCAL_LOCAL_RUN_H_
#define PARASOL_DEPLOY_LOCAL_LOCAL_RUN_H_

#include "base/clock.h"
#include "base/process.h"
#include "deploy/local/run_result.h"
#include "deploy/local/task_plan.h"

namespace parasol {

// Runs a job on this machine, or on job.hosts, to its end: starts all tasks as
// processes, restarts those that die, and shows the progress on stderr. Returns
// when no process is left here; those on other hosts end with the connections.
//   kSucceeded    the chief has exited with 0, and all others have ended.
//   kFailed       a task failed for good; exit_code is the task's exit code.
//   kInterrupted  one of `signals` has come; exit_code is 128 plus the first.
//   At
//                 the second one, or the first one behind a failure, all
//                 processes are killed.
RunResult RunJob(const LocalJob& job, TerminationSignal& signals, Clock& clock);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_LOCAL_RUN_H_
