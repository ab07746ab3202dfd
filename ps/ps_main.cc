#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "cluster/cluster_spec/role_flags.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/keep_memory.h"
#include "cluster/trust/trust_flags.h"
#include "ps/exchange/parameter_service.h"
#include "ps/machine_memory.h"
#include "ps/ps_process.h"
#include "ps/ps_task.h"
#include "ps/written_directory.h"

namespace parasol {

// What makes NonFinite the type of a flag.
bool AbslParseFlag(absl::string_view text, NonFinite* policy,
                   std::string* error) {
  if (text == "reject") {
    *policy = NonFinite::kReject;
  } else if (text == "apply") {
    *policy = NonFinite::kApply;
  } else {
    *error = "neither reject nor apply";
    return false;
  }
  return true;
}

std::string AbslUnparseFlag(NonFinite policy) {
  return policy == NonFinite::kReject ? "reject" : "apply";
}

}  // namespace parasol

ABSL_FLAG(std::string, metrics_address, "",
          "host:port of /metrics; port 0: chosen by the system, and logged. "
          "Default: port 0, on loopback if this task's address is there.");
ABSL_FLAG(absl::Duration, chief_timeout, absl::Minutes(5),
          "How long to wait for a chief that does not answer.");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(40),
          "How long a ps that is told to stop waits for a checkpoint that has "
          "its updates.");
ABSL_FLAG(uint64_t, memory_limit_bytes, 0,
          "Refuse a share of the model whose values and slots, and in "
          "synchronous training a step's gradients, are larger. Gradients that "
          "wait for others take what is left of it. 0: the memory of the "
          "machine, or of the container.");
ABSL_FLAG(int64_t, buffer_bytes, parasol::ParameterService::kDefaultBufferBytes,
          "What all workers' streams together may hold in requests that are "
          "being served and responses that are not sent yet. A stream that has "
          "its share is not read until its worker reads; one message and one "
          "answer (48 MiB at most) per stream always go through, and may come "
          "on top. gRPC may hold four times as much in messages that are being "
          "received or wait to be read.");
ABSL_FLAG(parasol::NonFinite, nonfinite_gradients, parasol::NonFinite::kReject,
          "What becomes of a push with an element that is infinite or NaN. "
          "reject: it is answered with an error that names the element, and "
          "changes nothing. apply: it is applied as any other, and one pass "
          "over the gradient is saved.");
ABSL_FLAG(int, polling_threads, parasol::ParameterService::kDefaultThreads,
          "Threads that receive, apply and answer pushes and pulls.");
ABSL_FLAG(int, payload_port, 0,
          "Port of the TCP connections that carry tensors beside gRPC's, for "
          "workers that ask for them. 0: a free one. A worker that can't reach "
          "it sends its tensors through gRPC. -1: all do.");
ABSL_FLAG(
    int, acting_port, 0,
    "Port on which this process serves for a lost ps whose standby it has, "
    "until that ps is back (durability: REPLICATE or REPLICATE_JOURNAL). 0: a "
    "free one.");
ABSL_FLAG(std::string, journal_dir, "",
          "Directory of the journal of a job whose durability has one. "
          "A ps that takes the place of a lost one has to see it. "
          "Default: the chief's checkpoint directory, if that is a folder.");

ABSL_FLAG(std::string, tier_dir, "",
          "Directory for rows of sparse tables with a tier, those that don't "
          "fit in its memory_bytes. What lies there has no name, and goes with "
          "the process. Default: $TMPDIR, or /var/tmp.");

namespace parasol {
namespace {

Rights RightsIn(const TaskConfig& config) {
  const bool has_chief =
      config.cluster && config.cluster->num_tasks(Role::kChief) > 0;
  return Rights({.worker0_is_chief = !has_chief});
}

PsTaskOptions TaskOptions(const TaskConfig& config) {
  PsTaskOptions options;
  options.task = NewTask(config);
  options.listen_address = RpcServer::ListenAddress(config.address);
  options.chief_address = config.chief_address;
  options.chief_timeout = absl::GetFlag(FLAGS_chief_timeout);
  options.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  options.memory_limit_bytes = absl::GetFlag(FLAGS_memory_limit_bytes);
  if (options.memory_limit_bytes == 0) {
    options.memory_limit_bytes = MachineMemoryBytes();
  }
  options.buffer_bytes = absl::GetFlag(FLAGS_buffer_bytes);
  options.non_finite = absl::GetFlag(FLAGS_nonfinite_gradients);
  options.polling_threads = absl::GetFlag(FLAGS_polling_threads);
  options.payload_port = absl::GetFlag(FLAGS_payload_port);
  options.journal_directory = absl::GetFlag(FLAGS_journal_dir);
  options.tier_directory = absl::GetFlag(FLAGS_tier_dir);
  options.rights = RightsIn(config);
  return options;
}

absl::Status CheckFlags() {
  const int64_t buffer_bytes = absl::GetFlag(FLAGS_buffer_bytes);
  if (buffer_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--buffer_bytes=", buffer_bytes, ": not above 0"));
  }
  const int threads = absl::GetFlag(FLAGS_polling_threads);
  if (threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--polling_threads=", threads, ": not above 0"));
  }
  const int payload_port = absl::GetFlag(FLAGS_payload_port);
  if (payload_port < -1 || payload_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--payload_port=", payload_port, ": not -1 to 65535"));
  }
  const int acting_port = absl::GetFlag(FLAGS_acting_port);
  if (acting_port < 0 || acting_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--acting_port=", acting_port, ": not 0 to 65535"));
  }
  const std::string journal_dir = absl::GetFlag(FLAGS_journal_dir);
  if (!journal_dir.empty()) {
    RETURN_IF_ERROR(CheckWrittenDirectory("journal_dir", journal_dir,
                                          /*make=*/true));
  }
  const std::string tier_dir = absl::GetFlag(FLAGS_tier_dir);
  if (!tier_dir.empty()) {
    RETURN_IF_ERROR(
        CheckWrittenDirectory("tier_dir", tier_dir, /*make=*/false));
  }
  return absl::OkStatus();
}

absl::Status Run(const TaskConfig& config, TerminationSignal& signal) {
  RETURN_IF_ERROR(CheckFlags());
  NameTaskInLog(absl::StrCat("ps/", config.index));
  MetricsRegistry registry;
  PsTaskOptions options = TaskOptions(config);
  ASSIGN_OR_RETURN(options.trust, TrustOfTask(config, PeerRole::kPs));
  ASSIGN_OR_RETURN(
      const auto metrics,
      MetricsServer::Start(
          MetricsListenAddress(absl::GetFlag(FLAGS_metrics_address), config),
          registry));
  options.metrics_address = WithPort(config.address, metrics->port());
  LOG(INFO) << VersionString() << ", /metrics on port " << metrics->port();
  ASSIGN_OR_RETURN(
      const auto process,
      PsProcess::Start({.task = options,
                        .address = config.address,
                        .acting_port = absl::GetFlag(FLAGS_acting_port),
                        .acting_metrics_address = WithPort(
                            MetricsListenAddress(
                                absl::GetFlag(FLAGS_metrics_address), config),
                            0)},
                       Clock::Real(), registry));
  signal.OnSignal([&process] { process->Stop(); });
  absl::Status result = process->Wait();
  signal.Disarm();
  return result;
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseFlagsAlone(argc, argv,
                           "Holds variables of a cluster given by TF_CONFIG.");
  parasol::ApplySystemLimits();
  parasol::ApplyDataCacheFlag();
  const auto config = parasol::TaskConfigOrExit(parasol::Role::kPs);
  parasol::TerminationSignal signal;
  parasol::KeepFreedMemory();
  return parasol::ExitWith(parasol::Run(config, signal));
}
