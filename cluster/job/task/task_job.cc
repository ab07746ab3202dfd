#include "cluster/job/task/task_job.h"

#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/tf_config.h"
#include "cluster/job/defaults.h"
#include "cluster/job/strategy.h"

namespace parasol {
namespace {

// As a worker without a cluster begins to train.
absl::Status FitToMachine(std::optional<StrategyKind> strategy,
                          absl::string_view device, job::Job job) {
  if (strategy.has_value()) ChooseStrategy(*strategy, job);
  ASSIGN_OR_RETURN(const ProcessReplicas replicas,
                   ResolveProcessReplicas(job, device));
  return SetReplicas(static_cast<int>(replicas.devices.size()), job);
}

}  // namespace

absl::Status FitToCluster(const TaskConfig& config,
                          std::optional<size_t> num_variables, job::Job& job) {
  const std::map<int, std::string>& workers =
      config.cluster->tasks(Role::kWorker);
  RETURN_IF_ERROR(ResolveClusterStrategy(config.strategy, config.num_ps, job));
  if (num_variables.has_value()) {
    RETURN_IF_ERROR(CheckHasVariables(job, *num_variables));
  }
  RETURN_IF_ERROR(CheckHasWorkerZero(job, workers));
  job::Job filled = job;
  RETURN_IF_ERROR(
      FillClusterDefaults(filled, static_cast<int>(workers.size())));
  return CheckRateCanBeReduced(filled);
}

absl::StatusOr<CheckedJob> CheckTaskJob(
    const TaskJob& task_job, const absl::StatusOr<TaskConfig>& config) {
  ASSIGN_OR_RETURN(
      CheckedJob checked,
      CheckedJob::Read(task_job.path, task_job.overrides, task_job.data_dir));
  if (!config.ok() || !checked.job().has_value()) return checked;
  job::Job job = *checked.job();
  std::optional<size_t> num_variables;
  if (checked.graph().has_value()) {
    num_variables = checked.graph()->variables.size();
  }
  const absl::Status fits =
      config->cluster.has_value()
          ? FitToCluster(*config, num_variables, job)
          : FitToMachine(config->strategy, task_job.device, job);
  if (!fits.ok()) checked.AddFault(fits.message());
  return checked;
}

int ReportTaskJob(const TaskJob& task_job,
                  const absl::StatusOr<TaskConfig>& config) {
  const absl::StatusOr<CheckedJob> checked = CheckTaskJob(task_job, config);
  if (!checked.ok()) return ExitWith(checked.status());
  int exit_code = config.ok() ? ExitWith(CheckChiefHasPs(*config)) : 0;
  for (const JobFault& fault : checked->faults()) {
    exit_code = ExitWith(absl::InvalidArgumentError(fault.Line()));
  }
  return exit_code;
}

}  // namespace parasol
