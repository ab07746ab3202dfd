// The `evaluator` binary: flags and wiring.

#include <string>

#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "cluster/cluster_spec/role_flags.h"
#include "cluster/trust/trust_flags.h"
#include "evaluator/run_evaluator.h"

ABSL_FLAG(std::string, data_dir, "",
          "Directory that the data set's paths in the job are relative to.");
ABSL_FLAG(std::string, device, "auto",
          "Where to compute: auto (a CUDA device if there is one), cpu, "
          "cuda:N.");
ABSL_FLAG(int, threads, 1, "Number of CPU threads that compute.");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "The job's checkpoints, where this task sees them under another path "
          "than the chief.");
ABSL_FLAG(std::string, metrics_address, "",
          "host:port of /metrics; port 0: chosen by the system, and logged. "
          "Default: port 0, on loopback if this task's address is there.");
ABSL_FLAG(std::string, health_address, "",
          "host:port of the gRPC health service; default: this task's address "
          "in TF_CONFIG, or none where the cluster does not list it.");
ABSL_FLAG(absl::Duration, chief_timeout, absl::Minutes(5),
          "How long to wait for a chief that does not answer.");
ABSL_FLAG(absl::Duration, poll_interval, absl::Seconds(1),
          "How often to look for a new checkpoint.");

int main(int argc, char** argv) {
  parasol::ParseFlagsAlone(
      argc, argv,
      "Evaluates the checkpoints of a job, one after the other, in a cluster "
      "given by TF_CONFIG.");
  parasol::ApplySystemLimits();
  parasol::ApplyDataCacheFlag();
  const parasol::TaskConfig config =
      parasol::TaskConfigOrExit(parasol::Role::kEvaluator);
  parasol::TerminationSignal signal;
  const auto trust =
      parasol::TrustOfTask(config, parasol::PeerRole::kEvaluator);
  if (!trust.ok()) return parasol::ExitWith(trust.status());
  parasol::RunEvaluatorOptions options;
  options.trust = *trust;
  options.metrics_address = parasol::MetricsListenAddress(
      absl::GetFlag(FLAGS_metrics_address), config);
  options.health_address = absl::GetFlag(FLAGS_health_address);
  options.chief_timeout = absl::GetFlag(FLAGS_chief_timeout);
  options.evaluation.model.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.evaluation.model.compute.device = absl::GetFlag(FLAGS_device);
  options.evaluation.model.compute.threads = absl::GetFlag(FLAGS_threads);
  options.evaluation.checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir);
  options.evaluation.poll_interval = absl::GetFlag(FLAGS_poll_interval);
  return parasol::ExitWith(parasol::RunEvaluator(config, options, signal));
}
