#include "chief/chief_task.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "chief/same_sharding.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/client/ps_client.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/placement/placement.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

constexpr absl::Duration kRpcGrace = absl::Seconds(1);

std::vector<wire::TableSpec> TableSpecs(const job::Model& model) {
  std::vector<wire::TableSpec> specs;
  for (const job::SparseTable& table : model.sparse_table()) {
    wire::TableSpec& spec = specs.emplace_back();
    spec.set_id(specs.size() - 1);
    spec.set_name(table.name());
    spec.set_width(table.width());
    *spec.mutable_initializer() = table.initializer();
    if (table.has_optimizer()) *spec.mutable_optimizer() = table.optimizer();
  }
  return specs;
}

absl::StatusOr<CheckpointStore> OpenStore(const ChiefTaskOptions& options) {
  const std::string& directory = options.checkpoint_directory.empty()
                                     ? options.job.checkpoint().directory()
                                     : options.checkpoint_directory;
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "no checkpoint directory: set --checkpoint_dir or the job's "
        "checkpoint.directory");
  }
  // A ps may have another working directory.
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(directory, error);
  absl::StatusOr<CheckpointStore> store =
      CheckpointStore::OpenForWriting(error ? directory : absolute);
  if (store.ok()) return store;
  return absl::InvalidArgumentError(store.status().message());
}

absl::StatusOr<std::vector<ShardBoard::Shard>> PlaceShards(
    const ChiefTaskOptions& options,
    const std::vector<VariableSpec>& variables) {
  ASSIGN_OR_RETURN(Placement placement,
                   Place(variables, options.job.parameter_server(),
                         static_cast<int>(options.ps.size())));
  std::vector<ShardBoard::Shard> shards;
  for (const auto& [index, address] : options.ps) {
    shards.push_back({index, address,
                      std::move(placement.shards[shards.size()]),
                      TableSpecs(options.job.model())});
  }
  return shards;
}

std::map<TaskId, std::string> Tasks(const ChiefTaskOptions& options) {
  // An evaluator need not be in the cluster spec.
  std::map<TaskId, std::string> tasks = {{{"evaluator", 0}, ""}};
  for (const auto& [index, address] : options.ps) {
    tasks[{"ps", index}] = address;
  }
  for (const auto& [index, address] : options.workers) {
    tasks[{"worker", index}] = address;
  }
  return tasks;
}

// What the checkpoints in the directory say about the run, if there are any.
absl::Status ResumeFrom(const CheckpointStore& store,
                        Coordinator::Options& options) {
  ASSIGN_OR_RETURN(ResumedRun run,
                   ResumeRun(store, options.job, options.contents));
  options.run_id = std::move(run.run_id);
  options.already_complete = run.is_complete;
  options.resumed = std::move(run.checkpoint);
  if (options.resumed) {
    options.same_sharding =
        HasSameSharding(*options.resumed, options.job, options.shards.size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChiefTaskOptions::UseJobFile(
    const std::string& path, const std::vector<std::string>& overrides) {
  if (path.empty()) {
    return absl::InvalidArgumentError("no job: set --job=FILE");
  }
  ASSIGN_OR_RETURN(LoadedJob loaded, LoadJobFile(path, overrides));
  job = std::move(loaded.job);
  variables = std::move(loaded.graph.variables);
  return absl::OkStatus();
}

absl::Status ChiefTaskOptions::UseCluster(const TaskConfig& config) {
  if (!config.cluster.has_value() || !config.is_chief) {
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG: ", RoleName(config.role), "/", config.index,
                     " is not the chief of a cluster"));
  }
  ps = config.cluster->tasks(Role::kPs);
  workers = config.cluster->tasks(Role::kWorker);
  address = config.address;
  listen_address = RpcServer::ListenAddress(config.address);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChiefTask>> ChiefTask::Start(
    const ChiefTaskOptions& options, Clock& clock, MetricsRegistry& metrics) {
  if (options.ps.empty() || options.workers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has ", options.ps.size(), " ps and ",
                     options.workers.size(), " workers"));
  }
  ChiefServer::Options server;
  server.heartbeat_interval = options.heartbeat_interval;
  server.address = options.address;
  server.metrics_address = options.metrics_address;
  Coordinator::Options& coordinator = server.coordinator;
  coordinator.job = options.job;
  FillClusterDefaults(coordinator.job,
                      static_cast<int>(options.workers.size()));
  coordinator.tasks = Tasks(options);
  coordinator.lease = options.lease;
  coordinator.ps_timeout = options.ps_timeout;
  coordinator.worker_timeout = options.worker_timeout;
  coordinator.checkpoint_timeout = options.checkpoint_timeout;
  coordinator.finish_timeout = options.finish_timeout;
  ASSIGN_OR_RETURN(coordinator.contents,
                   ContentsOf(options.variables, options.job));
  ASSIGN_OR_RETURN(coordinator.shards, PlaceShards(options, options.variables));
  ASSIGN_OR_RETURN(CheckpointStore store, OpenStore(options));
  ASSIGN_OR_RETURN(DirectoryLock directory_in_use,
                   DirectoryLock::Share(store.directory()));
  RETURN_IF_ERROR(ResumeFrom(store, coordinator));

  std::vector<std::unique_ptr<PsClient>> clients;
  for (const ShardBoard::Shard& shard : coordinator.shards) {
    clients.push_back(
        PsClient::Create(shard.address, options.shard_call_deadline));
  }
  auto executor = std::make_unique<OrderExecutor>(
      coordinator.job, coordinator.run_id, coordinator.shards,
      std::move(clients), std::move(store));
  std::unique_ptr<ChiefTask> task(
      new ChiefTask(std::move(server), std::move(executor), clock, metrics));
  task->directory_in_use_ = std::move(directory_in_use);
  ASSIGN_OR_RETURN(task->rpc_server_,
                   RpcServer::Start(options.listen_address, {&task->service_}));
  task->server_.Start();
  task->rpc_server_->SetServing(true);
  LOG(INFO) << "listening on port " << task->port();
  return task;
}

ChiefTask::~ChiefTask() {
  server_.EndWaits();
  if (rpc_server_ != nullptr) rpc_server_->Stop(absl::ZeroDuration());
}

absl::Status ChiefTask::Wait() {
  const absl::Status outcome = server_.Wait();
  rpc_server_->Stop(kRpcGrace);
  return outcome;
}

}  // namespace parasol
