#include "worker/run_worker.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "cluster/check/start_check.h"
#include "cluster/client/task_identity.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/collective/socket_endpoint.h"
#include "cluster/hook/training_hooks.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/strategy.h"
#include "cluster/rpc/server.h"
#include "ml/device/device.h"
#include "ml/device/device_name.h"
#include "parameters/composition.h"
#include "worker/chief_beside.h"
#include "worker/chief_place.h"
#include "worker/lone_training.h"
#include "worker/shown/lone_status.h"
#include "worker/shown/lone_status_service.h"
#include "worker/worker_task.h"

namespace parasol {
namespace {

// For the chief beside a worker whose own part is done: it writes the last
// checkpoint if that is not there yet, tells the others how the job has ended,
// and they leave within its finish_timeout.
constexpr absl::Duration kChiefExitLimit = absl::Minutes(2);
constexpr absl::Duration kChiefWatchInterval = absl::Milliseconds(200);

// The first of the chief's flags that was given to this worker; empty: none.
std::string ChiefFlag(const RunWorkerOptions& options) {
  if (!options.job_file.empty()) {
    return absl::StrCat("--job=", options.job_file);
  }
  if (!options.overrides.empty()) {
    return absl::StrCat("--set=", options.overrides.front());
  }
  if (!options.checkpoint_directory.empty()) {
    return absl::StrCat("--checkpoint_dir=", options.checkpoint_directory);
  }
  return "";
}

// If TF_CONFIG lists no chief, all workers may have the chief's flags: an
// operator starts them from one template, and only worker 0 uses the flags.
absl::Status CheckChiefFlags(const TaskConfig& config,
                             const RunWorkerOptions& options) {
  const bool has_chief =
      config.cluster.has_value() && config.cluster->num_tasks(Role::kChief) > 0;
  const std::string flag = ChiefFlag(options);
  if (!has_chief || flag.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": the chief of TF_CONFIG (", config.chief_address,
      ") reads the job; give this flag to the chief, not to worker/",
      config.index));
}

// Gives a job the numbers of the replicas of this process.
absl::Status FitToReplicas(const TaskConfig& config,
                           const RunWorkerOptions& options, job::Job& job,
                           ProcessReplicas& replicas) {
  if (config.strategy) ChooseStrategy(*config.strategy, job);
  ASSIGN_OR_RETURN(replicas, ResolveProcessReplicas(job, options.device));
  return SetReplicas(static_cast<int>(replicas.devices.size()), job);
}

absl::StatusOr<LoadedJob> LoadJob(const TaskConfig& config,
                                  const RunWorkerOptions& options) {
  if (options.job_file.empty()) {
    return absl::InvalidArgumentError(
        "TF_CONFIG is not set: a lone worker needs --job=FILE");
  }
  const auto fit = [&](std::optional<size_t>, job::Job& job) {
    ProcessReplicas replicas;
    return FitToReplicas(config, options, job, replicas);
  };
  ASSIGN_OR_RETURN(
      LoadedJob loaded,
      LoadCheckedJob({.path = options.job_file,
                      .overrides = options.overrides,
                      .options = {.data_dir = options.data_dir, .fit = fit},
                      .checkpoint_directory = options.checkpoint_directory},
                     LogStartLine));
  job::Job& job = loaded.job;
  if (!options.checkpoint_directory.empty()) {
    job.mutable_checkpoint()->set_directory(options.checkpoint_directory);
  }
  if (job.checkpoint().directory().empty()) {
    return absl::InvalidArgumentError(
        "no checkpoint directory: set --checkpoint_dir or the job's "
        "checkpoint.directory");
  }
  return loaded;
}

absl::Status RunAlone(const TaskConfig& config, const RunWorkerOptions& options,
                      TerminationSignal& signal, MetricsRegistry& registry,
                      LoneStatus& shown, TrainingHooks& hooks) {
  ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(config, options));
  ProcessReplicas replicas;
  RETURN_IF_ERROR(FitToReplicas(config, options, loaded.job, replicas));
  LoneTraining::Options local = {.trainer = {.job = std::move(loaded.job),
                                             .graph = std::move(loaded.graph),
                                             .replicas = std::move(replicas),
                                             .data_dir = options.data_dir,
                                             .threads = options.threads},
                                 .hooks = &hooks,
                                 .shown = &shown};
  if (options.checkpoint_timeout > absl::ZeroDuration()) {
    local.checkpoint_timeout = options.checkpoint_timeout;
  }
  LoneTraining training(std::move(local), Clock::Real(), registry);
  LoneStatusService service(shown);
  std::unique_ptr<RpcServer> server;
  if (!options.status_address.empty()) {
    ASSIGN_OR_RETURN(
        server,
        RpcServer::Start(options.status_address, {&service}, options.trust),
        _ << "--status_address");
    server->SetServing(true);
  }
  signal.OnSignal([&training] { training.Stop(); });
  const absl::Status result = training.Run();
  signal.Disarm();
  return result;
}

// Returns true for a worker of a cluster that was started to have variables
// with others, without ps or beside them.
bool IsOfGroup(const TaskConfig& config) {
  return HasGroups(config.strategy.value_or(StrategyOfCluster(config.num_ps)));
}

absl::StatusOr<std::unique_ptr<ChiefBeside>> StartChief(
    const TaskConfig& config, const RunWorkerOptions& options, int state_port) {
  ChiefBeside::Options chief;
  chief.binary = options.chief_binary;
  chief.arguments = {
      absl::StrCat("--job=", options.job_file),
      absl::StrCat("--checkpoint_dir=", options.checkpoint_directory)};
  if (!options.data_dir.empty()) {
    chief.arguments.push_back(absl::StrCat("--data_dir=", options.data_dir));
  }
  if (!options.data_cache_dir.empty()) {
    chief.arguments.push_back(
        absl::StrCat("--data_cache_dir=", options.data_cache_dir));
  }
  if (options.checkpoint_timeout > absl::ZeroDuration()) {
    chief.arguments.push_back(
        absl::StrCat("--checkpoint_timeout=",
                     absl::FormatDuration(options.checkpoint_timeout)));
  }
  if (options.worker_timeout > absl::ZeroDuration()) {
    chief.arguments.push_back(absl::StrCat(
        "--worker_timeout=", absl::FormatDuration(options.worker_timeout)));
  }
  if (config.strategy) {
    chief.arguments.push_back(
        absl::StrCat("--strategy=", StrategyName(*config.strategy)));
  }
  if (state_port > 0) {
    chief.arguments.push_back(
        absl::StrCat("--state_address=127.0.0.1:", state_port));
  }
  for (const std::string& value : options.overrides) {
    chief.arguments.push_back(absl::StrCat("--set=", value));
  }
  chief.arguments.insert(chief.arguments.end(), config.place_flags.begin(),
                         config.place_flags.end());
  chief.arguments.insert(chief.arguments.end(), options.trust_flags.begin(),
                         options.trust_flags.end());
  return ChiefBeside::Start(chief);
}

WorkerTaskOptions TaskOptions(const TaskConfig& config,
                              const RunWorkerOptions& options,
                              int metrics_port) {
  WorkerTaskOptions task;
  task.task = NewTask(config);
  task.chief_address = config.chief_address;
  task.trust = options.trust;
  if (!config.is_chief && !IsOfGroup(config)) {
    task.listen_address = RpcServer::ListenAddress(config.address);
  }
  task.metrics_address = WithPort(config.address, metrics_port);
  task.data_dir = options.data_dir;
  task.checkpoint_directory = options.checkpoint_directory;
  task.device = options.device;
  task.threads = options.threads;
  task.input_shards = config.cluster->num_tasks(Role::kWorker);
  task.chief_timeout = options.chief_timeout;
  task.ps_timeout = options.ps_timeout;
  return task;
}

// A worker and the chief beside it are one task: neither goes on without the
// other.
absl::Status WaitForBoth(WorkerTask& task, ChiefBeside& chief) {
  absl::Status result;
  {
    const std::jthread watch([&](std::stop_token worker_ended) {
      while (!worker_ended.stop_requested()) {
        const absl::Status ended = chief.Wait(kChiefWatchInterval);
        if (!absl::IsDeadlineExceeded(ended)) return task.Stop();
      }
    });
    result = task.Wait();
  }
  // A job that has failed ends the chief by itself.
  if (absl::IsUnavailable(result) || absl::IsDeadlineExceeded(result)) {
    chief.Stop();
  }
  const absl::Status ended = chief.Wait(kChiefExitLimit);
  const bool chief_is_the_reason =
      result.ok() || (absl::IsCancelled(result) && !absl::IsCancelled(ended));
  return chief_is_the_reason ? ended : result;
}

// Returns the endpoint of a worker's groups: at its address in the cluster or,
// for worker 0, where that one is the chief's, or for the chief's orders, at
// another port of the same host.
absl::StatusOr<std::unique_ptr<SocketEndpoint>> ListenForPeers(
    const TaskConfig& config, const RunWorkerOptions& options) {
  const std::string address = RpcServer::ListenAddress(
      config.is_chief || config.index == 0 || options.collective_port > 0
          ? WithPort(config.address, options.collective_port)
          : config.address);
  const size_t colon = address.rfind(':');
  int port = 0;
  CHECK(absl::SimpleAtoi(address.substr(colon + 1), &port)) << address;
  ASSIGN_OR_RETURN(std::unique_ptr<SocketEndpoint> endpoint,
                   SocketEndpoint::Start(
                       address.substr(0, colon), port,
                       {.protocol = {}, .certificates = options.certificates}),
                   _ << "worker/" << config.index
                     << ": --collective_port=" << options.collective_port);
  LOG(INFO) << "ready at " << config.address << "; peers connect to port "
            << endpoint->port();
  return endpoint;
}

GroupPlace PlaceOf(const TaskConfig& config, SocketEndpoint& endpoint) {
  GroupPlace place = {
      .endpoint = &endpoint,
      .collective_address = WithPort(config.address, endpoint.port()),
      .has_ps = config.num_ps > 0,
      .state_place = StatePlace(config.cluster->tasks(Role::kPs))};
  if (config.is_chief) {
    place.state_listen_address = "127.0.0.1:0";
  } else if (config.index == 0) {
    place.state_listen_address = RpcServer::ListenAddress(config.address);
  }
  return place;
}

absl::Status RunInCluster(const TaskConfig& config,
                          const RunWorkerOptions& options,
                          TerminationSignal& signal, MetricsRegistry& registry,
                          int metrics_port, TrainingHooks& hooks) {
  WorkerTaskOptions task_options = TaskOptions(config, options, metrics_port);
  task_options.hooks = &hooks;
  std::optional<ChiefPlace> place;
  if (config.is_chief) {
    ASSIGN_OR_RETURN(place,
                     ChiefPlace::Take(absl::StrCat("worker/", config.index),
                                      config.address));
  }
  std::unique_ptr<SocketEndpoint> endpoint;
  if (IsOfGroup(config)) {
    ASSIGN_OR_RETURN(endpoint, ListenForPeers(config, options));
    task_options.group = PlaceOf(config, *endpoint);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerTask> task,
                   WorkerTask::Start(task_options, Clock::Real(), registry));
  // It contacts the chief until that is there.
  std::unique_ptr<ChiefBeside> chief;
  if (config.is_chief) {
    ASSIGN_OR_RETURN(chief, StartChief(config, options, task->state_port()));
  }
  signal.OnSignal([&] {
    task->Stop();
    if (chief != nullptr) chief->Stop();
  });
  const absl::Status result =
      chief == nullptr ? task->Wait() : WaitForBoth(*task, *chief);
  signal.Disarm();
  return result;
}

}  // namespace

absl::Status RunWorker(const TaskConfig& config,
                       const RunWorkerOptions& options,
                       TerminationSignal& signal) {
  NameTaskInLog(absl::StrCat("worker/", config.index));
  RETURN_IF_ERROR(CheckChiefFlags(config, options));
  RETURN_IF_ERROR(CheckComputeFlags({.data_dir = options.data_dir,
                                     .device = options.device,
                                     .threads = options.threads}));
  MetricsRegistry registry;
  if (config.cluster.has_value() && !options.status_address.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_address=", options.status_address,
                     ": only for a worker without a cluster; ask the chief at ",
                     config.chief_address));
  }
  LoneStatus shown(Clock::Real(), "the worker has not begun to train");
  const bool is_lone = !config.cluster.has_value();
  PageServer::Pages page = nullptr;
  if (is_lone) {
    page = [&shown](absl::string_view path) { return shown.PageAt(path); };
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<MetricsServer> metrics,
      MetricsServer::Start(options.metrics_address, registry, std::move(page)));
  LOG(INFO) << VersionString()
            << (is_lone ? ", page and /metrics on port "
                        : ", /metrics on port ")
            << metrics->port();
  TrainingHooks hooks({.role = "worker", .index = config.index});
  if (is_lone) {
    return RunAlone(config, options, signal, registry, shown, hooks);
  }
  return RunInCluster(config, options, signal, registry, metrics->port(),
                      hooks);
}

absl::Status ListDevices() {
  std::string lines = absl::StrCat(DeviceName().ToString(), "\n");
  for (const std::string& name : Device::CudaNames()) {
    absl::StrAppend(&lines, name, "\n");
  }
  const bool written =
      std::fputs(lines.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written
             ? absl::OkStatus()
             : absl::InternalError("--list_devices: stdout can't be written");
}

}  // namespace parasol
