// The `worker` binary: flags and wiring.

#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/command_line.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "cluster/cluster_spec/role_flags.h"
#include "cluster/job/task/task_job.h"
#include "cluster/rpc/keep_memory.h"
#include "cluster/trust/trust_flags.h"
#include "worker/run_worker.h"

ABSL_FLAG(std::string, data_dir, "",
          "Directory that the data set's paths in the job are relative to.");
ABSL_FLAG(std::string, device, "auto",
          "Where to compute: auto (a CUDA device if there is one), cpu, cpu:N, "
          "cuda:N.");
ABSL_FLAG(bool, list_devices, false,
          "Print the names of this machine's devices, one per line, and exit "
          "0.");
ABSL_FLAG(
    int, threads, 1,
    "Number of CPU threads that compute. A worker that has a machine to itself "
    "should have its cores.");
ABSL_FLAG(std::string, metrics_address, "",
          "host:port of /metrics, and of the job's page if the worker has no "
          "cluster; port 0: chosen by the system, and logged. "
          "Default: port 0, on loopback if this task's address is there.");
ABSL_FLAG(absl::Duration, chief_timeout, absl::Minutes(5),
          "How long to wait for a chief that does not answer.");
ABSL_FLAG(absl::Duration, ps_timeout, absl::Minutes(5),
          "How long to wait for a ps that does not answer.");
ABSL_FLAG(std::string, job, "",
          "Job file. Only for a worker that is its cluster's chief (worker 0 "
          "where TF_CONFIG lists no chief), or that has no cluster.");
ABSL_FLAG(parasol::RepeatedFlag, set, {},
          "path=value: changes a setting of the job; repeatable. With --job.");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "Overrides the job's checkpoint.directory. With --job.");
ABSL_FLAG(std::string, chief_binary, "",
          "The chief that worker 0 runs where TF_CONFIG lists none; default: "
          "the one beside this binary.");
ABSL_FLAG(absl::Duration, checkpoint_timeout, absl::ZeroDuration(),
          "How long the first and the last checkpoint are tried; for a worker "
          "without a cluster, or for the chief which worker 0 runs. 0: the "
          "default, 10 minutes.");
ABSL_FLAG(absl::Duration, worker_timeout, absl::ZeroDuration(),
          "That of the chief which worker 0 runs: how long it waits for "
          "missing workers; 0: its default.");
ABSL_FLAG(int, collective_port, 0,
          "Where a worker of a cluster without ps takes its peers' "
          "connections; 0: at its address in TF_CONFIG or, for worker 0, at a "
          "port that the system chooses.");
ABSL_FLAG(std::string, status_address, "",
          "host:port at which a worker without a cluster answers `parasol "
          "status`, `why` and `trace`; empty: nowhere.");

namespace parasol {
namespace {

// Under --check_config, reports all faults of the job that this worker would
// train alone or as the chief of its cluster, each as a line on stderr, and
// exits with 2 if there are any.
void ExitIfJobIsFaulty() {
  const TaskJob job = {.path = absl::GetFlag(FLAGS_job),
                       .overrides = absl::GetFlag(FLAGS_set).values,
                       .data_dir = absl::GetFlag(FLAGS_data_dir),
                       .device = absl::GetFlag(FLAGS_device)};
  if (!absl::GetFlag(FLAGS_check_config) || job.path.empty()) return;
  const absl::StatusOr<TaskConfig> config =
      TaskConfigFromEnvironment(Role::kWorker);
  if (!config.ok() || !config->is_chief) return;
  const int exit_code = ReportTaskJob(job, config);
  if (exit_code != 0) std::exit(exit_code);
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseFlagsAlone(
      argc, argv,
      "Computes gradients for a cluster given by TF_CONFIG, or, without one, "
      "trains --job in this process alone.");
  parasol::ApplySystemLimits();
  parasol::ApplyDataCacheFlag();
  if (absl::GetFlag(FLAGS_list_devices)) {
    return parasol::ExitWith(parasol::ListDevices());
  }
  parasol::ExitIfJobIsFaulty();
  const parasol::TaskConfig config =
      parasol::TaskConfigOrExit(parasol::Role::kWorker);
  parasol::TerminationSignal signal;
  parasol::KeepFreedMemory();
  const auto trust = parasol::TrustOfTask(config, parasol::PeerRole::kWorker);
  if (!trust.ok()) return parasol::ExitWith(trust.status());
  const absl::Status may_listen =
      parasol::CheckMayListen(parasol::TrustSettingsOfFlags(), "status_address",
                              absl::GetFlag(FLAGS_status_address));
  if (!may_listen.ok()) return parasol::ExitWith(may_listen);
  parasol::RunWorkerOptions options;
  options.trust = *trust;
  const parasol::TrustSettings settings = parasol::TrustSettingsOfFlags();
  options.trust_flags = settings.ToFlags();
  if (options.trust != nullptr && options.trust->encrypts_all()) {
    options.certificates = settings.files;
  }
  options.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.data_cache_dir = absl::GetFlag(FLAGS_data_cache_dir);
  options.device = absl::GetFlag(FLAGS_device);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.metrics_address = parasol::MetricsListenAddress(
      absl::GetFlag(FLAGS_metrics_address), config);
  options.chief_timeout = absl::GetFlag(FLAGS_chief_timeout);
  options.ps_timeout = absl::GetFlag(FLAGS_ps_timeout);
  options.job_file = absl::GetFlag(FLAGS_job);
  options.overrides = absl::GetFlag(FLAGS_set).values;
  options.checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir);
  options.chief_binary = absl::GetFlag(FLAGS_chief_binary);
  options.checkpoint_timeout = absl::GetFlag(FLAGS_checkpoint_timeout);
  options.worker_timeout = absl::GetFlag(FLAGS_worker_timeout);
  options.status_address = absl::GetFlag(FLAGS_status_address);
  options.collective_port = absl::GetFlag(FLAGS_collective_port);
  return parasol::ExitWith(parasol::RunWorker(config, options, signal));
}
