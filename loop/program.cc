#include "loop/program.h"

#include <map>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/cluster_spec/role_flags.h"
#include "cluster/object/store_files.h"
#include "cluster/trust/trust_flags.h"
#include "loop/peers/local_steps.h"
#include "loop/peers/peers_of.h"
#include "loop/peers/program_status.h"
#include "worker/shown/lone_status.h"

ABSL_FLAG(std::vector<std::string>, devices, {},
          "Devices of this process, a replica on each: cpu:0,cpu:1. Default: "
          "one CPU.");
ABSL_FLAG(int, threads, 1, "Number of CPU threads of each replica.");
ABSL_FLAG(uint64_t, seed, 0,
          "Key of initial values and of what is drawn at random; the same for "
          "all processes.");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "Directory of checkpoints, from which a program goes on; empty: "
          "none.");
ABSL_FLAG(int64_t, checkpoint_every, 0,
          "Number of iterations between checkpoints; 0: a job's default.");
ABSL_FLAG(std::string, local_steps, "",
          "Iterations that a worker of a cluster with ps makes with values of "
          "its own before it exchanges what they have changed, as a job has "
          "them: 'steps: 100 outer { sgd { learning_rate: 0.7 momentum: 0.9 } "
          "}'. Empty: each iteration is exchanged.");
ABSL_FLAG(absl::Duration, peer_timeout, absl::Minutes(5),
          "How long a process that is missing, or takes no part, is waited "
          "for.");

ABSL_FLAG(
    std::string, status_address, "",
    "host:port at which worker 0, or the only process, answers `parasol "
    "status`, `why` and `trace`, with --checkpoint_dir; other workers tell "
    "worker 0 at this port of its host how they go. Empty: nowhere. With "
    "ps the chief answers at its own address.");
ABSL_FLAG(
    std::string, metrics_address, "",
    "host:port of /metrics, and of the job's page if this is the chief of "
    "a cluster with ps or, with --checkpoint_dir, worker 0 or the only "
    "process; port 0: chosen by the system, and logged. Empty: nowhere.");

namespace parasol::loop {
namespace {

constexpr int kMaxPort = 65535;

// The chief of a cluster with ps runs the program, too.
Role RoleOfProcess() {
  const absl::StatusOr<TaskConfig> chief =
      TaskConfigFromEnvironment(Role::kChief);
  return chief.ok() ? Role::kChief : Role::kWorker;
}

}  // namespace

Program::Program(int argc, char** argv, absl::string_view usage)
    : arguments_(ParseCommandLine(argc, argv, usage)),
      status_(std::make_unique<ProgramStatus>()) {
  ApplySystemLimits();
  UseObjectStores();
  config_ = TaskConfigOrExit(RoleOfProcess());
  signal_ = std::make_unique<TerminationSignal>();
}

Program::~Program() = default;

absl::StatusOr<std::unique_ptr<Strategy>> Program::CreateStrategy() {
  std::vector<std::string> devices = absl::GetFlag(FLAGS_devices);
  if (devices.empty()) devices.push_back("cpu");
  const bool has_one = config_.strategy == StrategyKind::kDefault ||
                       config_.strategy == StrategyKind::kOneDevice;
  if (has_one && devices.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices lists ", devices.size(), " devices, and ",
                     StrategyName(*config_.strategy),
                     " has one: choose --strategy=mirrored"));
  }
  ProgramSettings program = {
      .checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir),
      .metrics = &metrics_,
      .metrics_address =
          metrics_server_ != nullptr && config_.cluster
              ? WithPort(config_.address, metrics_server_->port())
              : "",
      .status = status_.get()};
  if (absl::GetFlag(FLAGS_checkpoint_every) > 0) {
    program.checkpoint.set_every_steps(absl::GetFlag(FLAGS_checkpoint_every));
  }
  const std::string local = absl::GetFlag(FLAGS_local_steps);
  if (!local.empty()) {
    ASSIGN_OR_RETURN(program.local_steps, ParseLocalSteps(local),
                     _ << "--local_steps");
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<Peers> peers,
      PeersOf(config_, {.replicas = static_cast<int>(devices.size()),
                        .program = std::move(program),
                        .trust = TrustSettingsOfFlags(),
                        .peer_timeout = absl::GetFlag(FLAGS_peer_timeout)}));
  return Strategy::WithPeers(devices,
                             {.seed = absl::GetFlag(FLAGS_seed),
                              .threads = absl::GetFlag(FLAGS_threads)},
                             std::move(peers));
}

bool Program::LeadsPs() const {
  return config_.num_ps > 0 && config_.role == Role::kChief;
}

// The first process is at the flag's port of its host in the cluster.
absl::Status Program::TellFirst(const std::string& address) {
  const std::map<int, std::string>& workers =
      config_.cluster->tasks(Role::kWorker);
  const auto first = workers.find(0);
  // PeersOf() refuses such a cluster.
  if (first == workers.end()) return absl::OkStatus();
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port) ||
      port < 1 || port > kMaxPort) {
    LOG(WARNING) << "--status_address=" << address << ": worker/"
                 << config_.index << " can't tell worker/0 how it goes: give "
                 << "the port of worker/0, 1 to " << kMaxPort;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const Trust> trust,
                   TrustOfTask(config_, PeerRole::kWorker));
  status_->TellFirst(NewTask(config_), WithPort(first->second, port),
                     std::move(trust));
  return absl::OkStatus();
}

absl::Status Program::StartServers() {
  const std::string metrics = absl::GetFlag(FLAGS_metrics_address);
  if (!metrics.empty()) {
    // Elsewhere nobody knows how the job goes.
    const bool is_first = config_.num_ps == 0 && config_.index == 0 &&
                          !absl::GetFlag(FLAGS_checkpoint_dir).empty();
    const bool has_page = LeadsPs() || is_first;
    PageServer::Pages page = nullptr;
    if (has_page) {
      page = [this](absl::string_view path) { return status_->PageAt(path); };
    }
    ASSIGN_OR_RETURN(metrics_server_,
                     MetricsServer::Start(metrics, metrics_, std::move(page)),
                     _ << "--metrics_address");
    LOG(INFO) << VersionString()
              << (has_page ? ", page and /metrics on port "
                           : ", /metrics on port ")
              << metrics_server_->port();
  }
  const std::string address = absl::GetFlag(FLAGS_status_address);
  if (address.empty()) return absl::OkStatus();
  if (config_.num_ps > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--status_address=", address, ": the chief of a cluster with ps ",
        "answers at its own address; leave the flag out and ask ",
        config_.chief_address));
  }
  if (config_.index > 0) return TellFirst(address);
  if (absl::GetFlag(FLAGS_checkpoint_dir).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_address=", address,
                     ": what it shows is beside the checkpoints; give "
                     "--checkpoint_dir, too"));
  }
  const TrustSettings settings = TrustSettingsOfFlags();
  RETURN_IF_ERROR(CheckMayListen(settings, "status_address", address));
  ASSIGN_OR_RETURN(std::shared_ptr<const Trust> trust,
                   TrustOfTask(config_, PeerRole::kWorker));
  if (config_.cluster) {
    status_->shown().SetProcesses(config_.num_workers);
  }
  ASSIGN_OR_RETURN(
      status_server_,
      ProgramStatusServer::Start(address, *status_, std::move(trust)),
      _ << "--status_address");
  return absl::OkStatus();
}

absl::Status Program::RunBody(
    const std::function<absl::Status(Strategy& strategy)>& body) {
  RETURN_IF_ERROR(StartServers());
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy, CreateStrategy());
  signal_->OnSignal([&strategy] { strategy->Stop(); });
  absl::Status result;
  {
    const Strategy::Scope scope(*strategy);
    result = CatchExceptions([&] { return body(*strategy); });
  }
  result = strategy->End(result);
  signal_->Disarm();
  return result;
}

int Program::Run(const std::function<absl::Status(Strategy& strategy)>& body) {
  return ExitWith(RunBody(body));
}

}  // namespace parasol::loop
