// The `chief` binary: flags and wiring.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "base/command_line.h"
#include "base/log.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "chief/chief_task.h"
#include "chief/kubeflow/https_post.h"
#include "cluster/check/start_check.h"
#include "cluster/client/task_identity.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "cluster/cluster_spec/role_flags.h"
#include "cluster/cluster_spec/tf_config.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/task/elastic_workers.h"
#include "cluster/job/task/task_job.h"
#include "cluster/trust/trust_flags.h"
#include "coordinator/page/job_page.h"

ABSL_FLAG(std::string, job, "", "Job file. Required.");
ABSL_FLAG(parasol::RepeatedFlag, set, {},
          "path=value: changes a setting of the job; repeatable.");
ABSL_FLAG(std::string, data_dir, "",
          "Directory of the data, as workers have it: the chief looks at a "
          "sample of them before it starts, and at the names of columns, if "
          "the job has patterns of them. Empty: workers look at theirs.");
ABSL_FLAG(std::string, checkpoint_dir, "", "Overrides the job's directory.");
ABSL_FLAG(std::string, metrics_address, "",
          "host:port of /metrics; port 0: chosen by the system, and logged. "
          "Default: port 0, on loopback if this task's address is there.");
ABSL_FLAG(absl::Duration, ps_timeout, absl::Minutes(5),
          "How long to wait for a missing ps.");
ABSL_FLAG(absl::Duration, worker_timeout, absl::Minutes(5),
          "How long to wait when no worker is there, or for one that "
          "completes none of its steps.");
ABSL_FLAG(
    bool, elastic_workers, false,
    "Workers come and go: TF_CONFIG lists all that there may ever be, and "
    "nobody misses those that are not there.");
ABSL_FLAG(absl::Duration, checkpoint_timeout, absl::Minutes(10),
          "How long to try to write the first and the last checkpoint.");
ABSL_FLAG(std::string, state_address, "",
          "Where worker 0 takes orders for the variables that the workers have "
          "(multi_worker_mirrored); given by the worker beside this chief.");
ABSL_FLAG(bool, beside_worker, false,
          "Run by worker 0 of a cluster whose TF_CONFIG lists no chief.");

namespace parasol {
namespace {

// Under --check_config, reports all faults of the job and of its cluster, each
// as a line on stderr, and exits with 2 if there are any.
void ExitIfJobIsFaulty(Role role) {
  const TaskJob job = {.path = absl::GetFlag(FLAGS_job),
                       .overrides = absl::GetFlag(FLAGS_set).values,
                       .data_dir = absl::GetFlag(FLAGS_data_dir)};
  if (!absl::GetFlag(FLAGS_check_config) || job.path.empty()) return;
  const int exit_code = ReportTaskJob(job, TaskConfigFromEnvironment(role));
  if (exit_code != 0) std::exit(exit_code);
}

// Loads the job and checks it, with a sample of the data if --data_dir says
// where they are.
absl::StatusOr<LoadedJob> LoadJobToLead(const TaskConfig& config) {
  if (absl::GetFlag(FLAGS_job).empty()) {
    return absl::InvalidArgumentError("no job: set --job=FILE");
  }
  if (!config.cluster.has_value()) {
    return absl::InvalidArgumentError(
        "TF_CONFIG: a chief needs a cluster, and it has none");
  }
  const auto fit = [&config](std::optional<size_t> variables,
                             job::Job& job) -> absl::Status {
    if (absl::GetFlag(FLAGS_elastic_workers)) {
      RETURN_IF_ERROR(CheckElasticWorkers(job));
    }
    RETURN_IF_ERROR(FitToCluster(config, variables, job));
    return FillClusterDefaults(job, config.cluster->num_tasks(Role::kWorker));
  };
  return LoadCheckedJob(
      {.path = absl::GetFlag(FLAGS_job),
       .overrides = absl::GetFlag(FLAGS_set).values,
       .options = {.data_dir = absl::GetFlag(FLAGS_data_dir),
                   .workers = config.cluster->num_tasks(Role::kWorker),
                   .ps = std::max(1, config.num_ps),
                   .fit = fit,
                   .code_is_elsewhere = true},
       .checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir)},
      LogStartLine);
}

// Returns the server that a TrainJob of Kubeflow gives; nullopt: none, or it is
// of no use. The job does not depend on it.
std::optional<HttpsServer> TrainerServerFromEnvironment() {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  HttpsServer server = {
      .url = variable("KUBEFLOW_TRAINER_SERVER_URL"),
      .ca_file = variable("KUBEFLOW_TRAINER_SERVER_CA_CERT"),
      .token_file = variable("KUBEFLOW_TRAINER_SERVER_TOKEN")};
  if (server.url.empty()) return std::nullopt;
  const absl::Status checked = CheckHttpsServer(server);
  if (checked.ok()) return server;
  LOG(WARNING)
      << "no progress is posted: KUBEFLOW_TRAINER_SERVER_URL, _CA_CERT "
         "or _TOKEN is wrong: "
      << checked.message();
  return std::nullopt;
}

absl::Status Run(const TaskConfig& config, TerminationSignal& signal) {
  NameTaskInLog("chief");
  RETURN_IF_ERROR(CheckChiefHasPs(config));
  ChiefTaskOptions options;
  ASSIGN_OR_RETURN(LoadedJob loaded, LoadJobToLead(config));
  options.UseJob(std::move(loaded));
  options.state_address = absl::GetFlag(FLAGS_state_address);
  ASSIGN_OR_RETURN(options.trust, TrustOfTask(config, PeerRole::kChief));
  RETURN_IF_ERROR(options.UseCluster(config));
  options.checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir);
  options.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.ps_timeout = absl::GetFlag(FLAGS_ps_timeout);
  options.worker_timeout = absl::GetFlag(FLAGS_worker_timeout);
  options.checkpoint_timeout = absl::GetFlag(FLAGS_checkpoint_timeout);
  options.has_elastic_workers = absl::GetFlag(FLAGS_elastic_workers);
  options.trainer_server = TrainerServerFromEnvironment();
  MetricsRegistry registry;
  JobPage page(Clock::Real());
  ASSIGN_OR_RETURN(
      const auto metrics,
      MetricsServer::Start(
          MetricsListenAddress(absl::GetFlag(FLAGS_metrics_address), config),
          registry, [&page](absl::string_view path) { return page.At(path); }));
  options.page = &page;
  options.metrics_address = WithPort(options.address, metrics->port());
  LOG(INFO) << VersionString() << ", page and /metrics on port "
            << metrics->port();
  options.cancelled = [&signal] { return signal.signal() != 0; };
  ASSIGN_OR_RETURN(const auto task,
                   ChiefTask::Start(options, Clock::Real(), registry));
  signal.OnSignal([&task] { task->Stop(); });
  const absl::Status result = task->Wait();
  signal.Disarm();
  return result;
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseFlagsAlone(argc, argv, "Leads TF_CONFIG's cluster in a job.");
  parasol::ApplySystemLimits();
  parasol::ApplyDataCacheFlag();
  const parasol::Role role = absl::GetFlag(FLAGS_beside_worker)
                                 ? parasol::Role::kWorker
                                 : parasol::Role::kChief;
  parasol::ExitIfJobIsFaulty(role);
  const auto config = parasol::TaskConfigOrExit(role);
  parasol::TerminationSignal signal;
  return parasol::ExitWith(parasol::Run(config, signal));
}
