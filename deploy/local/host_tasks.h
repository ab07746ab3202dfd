#ifndef PARASOL_DEPLOY_LOCAL_HOST_TASKS_H_
#define PARASOL_DEPLOY_LOCAL_HOST_TASKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/local/task_plan.h"

// The tasks of a job on several machines.
namespace parasol {

// Returns the addresses of PlanTasks() on the machines job.hosts. The chief and
// the evaluator are on the first one. Ps are dealt to all in turn, and so are
// workers; a machine with two slots has two turns in a row. Each task has the
// next two ports of its machine from job.base_port on: one of its own, and one
// for its metrics.
//   InvalidArgument  a machine has too few ports above job.base_port.
absl::StatusOr<std::vector<std::string>> AddressesOnHosts(const LocalJob& job);

// Makes the tasks of a plan for AddressesOnHosts() start on their machines.
// Each guard reads the run's token from the connection, and hands it to its
// task.
void StartOnHosts(const LocalJob& job, const std::string& token,
                  std::vector<TaskPlan>& tasks);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_HOST_TASKS_H_
