#ifndef PARASOL_CLUSTER_JOB_TASK_TASK_JOB_H_
#define PARASOL_CLUSTER_JOB_TASK_TASK_JOB_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/job/check_job.h"
#include "proto/job.pb.h"

// Checks of whether a task can train a job. The start of the task and its
// --check_config both ask here.
namespace parasol {

// Gives the job the strategy by which the cluster of `config` trains it, and
// returns OK if the cluster's tasks can do so. `num_variables` is the number of
// the model's variables that are no sparse tables; nullopt if it is not known.
//   InvalidArgument  as for ResolveClusterStrategy(), CheckHasVariables(),
//                    CheckHasWorkerZero(), FillClusterDefaults() and
//                    CheckRateCanBeReduced().
absl::Status FitToCluster(const TaskConfig& config,
                          std::optional<size_t> num_variables, job::Job& job);

// The job that the flags of a task give it.
struct TaskJob {
  std::string path = {};  // --job
  std::vector<std::string> overrides = {};
  std::string data_dir = {};
  std::string device = "auto";
};

// Returns the job with all of its faults in the cluster of `config`, or on the
// devices of a worker without a cluster. If `config` is an error, the job is
// checked by itself.
//   NotFound, InvalidArgument  the file can't be read.
absl::StatusOr<CheckedJob> CheckTaskJob(
    const TaskJob& task_job, const absl::StatusOr<TaskConfig>& config);

// Prints the faults that CheckTaskJob() and CheckChiefHasPs() find, each as a
// line on stderr, for main(), and returns the exit code: 0 if there is none.
int ReportTaskJob(const TaskJob& task_job,
                  const absl::StatusOr<TaskConfig>& config);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_TASK_TASK_JOB_H_
