#include "chief/chief_task.h"

#include <sys/random.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/client/ps_client.h"
#include "cluster/cluster_spec/tf_config.h"
#include "cluster/job/defaults.h"
#include "cluster/job/followed/followed_set.h"
#include "cluster/job/strategy.h"
#include "cluster/job/task/task_job.h"
#include "cluster/placement/placement.h"
#include "coordinator/followed_run.h"
#include "coordinator/layout.h"
#include "coordinator/taken_run.h"
#include "ml/model/graph_inputs.h"
#include "ml/optimizer/assigned/plain_subtraction.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

// Descriptors of a chief without tasks, and of those who ask for the status.
constexpr int64_t kOtherDescriptors = 64;
constexpr absl::Duration kRpcGrace = absl::Seconds(1);
// Slices of a topic that are kept in the log. Their names may have kilobytes.
constexpr size_t kMostSlices = size_t{1} << 13;
// Time that a look at the directory's owner may take before a new process gets
// its place without it.
constexpr absl::Duration kOwnerLook = absl::Seconds(1);

std::vector<wire::TableSpec> TableSpecs(const job::Model& model) {
  std::vector<wire::TableSpec> specs;
  for (const job::SparseTable& table : model.sparse_table()) {
    wire::TableSpec& spec = specs.emplace_back();
    spec.set_id(specs.size() - 1);
    spec.set_name(table.name());
    spec.set_width(table.width());
    *spec.mutable_initializer() = table.initializer();
    if (table.has_admission()) *spec.mutable_admission() = table.admission();
    if (table.has_eviction()) *spec.mutable_eviction() = table.eviction();
    if (table.has_tier()) *spec.mutable_tier() = table.tier();
    spec.set_bfloat16(table.values() == job::SparseTable::BFLOAT16);
    if (!table.trainable()) {
      *spec.mutable_optimizer() = PlainSubtraction();
      continue;
    }
    if (table.has_optimizer()) *spec.mutable_optimizer() = table.optimizer();
    if (table.learning_rate_multiplier() != 1) {
      spec.set_learning_rate_multiplier(table.learning_rate_multiplier());
    }
  }
  return specs;
}

absl::StatusOr<std::string> CheckpointDirectory(
    const ChiefTaskOptions& options) {
  const std::string& directory = options.checkpoint_directory.empty()
                                     ? options.job.checkpoint().directory()
                                     : options.checkpoint_directory;
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "no checkpoint directory: set --checkpoint_dir or the job's "
        "checkpoint.directory");
  }
  if (IsUri(directory)) return directory;
  // A ps may have another working directory.
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(directory, error);
  return error ? directory : absolute;
}

absl::Duration WatchInterval(const std::string& directory, bool is_awaited) {
  if (IsUri(directory)) {
    return is_awaited ? EvaluationWatch::kAwaitedIntervalInStore
                      : EvaluationWatch::kIntervalInStore;
  }
  return is_awaited ? EvaluationWatch::kAwaitedInterval
                    : EvaluationWatch::kInterval;
}

// A task that finds no descriptor at the chief would not be told why.
absl::Status CheckDescriptorsSuffice(const ChiefTaskOptions& options) {
  const int64_t tasks =
      static_cast<int64_t>(options.workers.size() + options.ps.size());
  const int64_t needed =
      tasks + static_cast<int64_t>(options.ps.size()) + kOtherDescriptors;
  const int64_t limit = DescriptorLimit();
  if (needed <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a chief of ", options.ps.size(), " ps and ", options.workers.size(),
      " workers needs ", needed, " open descriptors, but may have ", limit,
      ": raise the limit (ulimit -n)"));
}

std::string RandomSecret() {
  std::string secret(16, '\0');
  CHECK(getrandom(secret.data(), secret.size(), 0) ==
        static_cast<ssize_t>(secret.size()))
      << "getrandom";
  return secret;
}

// `job`: with its cluster's defaults.
absl::StatusOr<std::vector<ShardBoard::Shard>> PlaceShards(
    const ChiefTaskOptions& options, const job::Job& job) {
  const bool is_hybrid = IsHybrid(job);
  const int num_ps = is_hybrid ? 1 : static_cast<int>(options.ps.size());
  ASSIGN_OR_RETURN(Placement placement,
                   Place(options.variables, job.parameter_server(), num_ps));
  AssignOptimizers(job, placement);
  std::vector<ShardBoard::Shard> shards;
  if (is_hybrid) {
    for (const auto& [index, address] : options.ps) {
      shards.push_back({index, address, {}, TableSpecs(job.model())});
    }
    shards.back().parts = std::move(placement.shards[0]);
    shards.back().tables.clear();
    return shards;
  }
  for (const auto& [index, address] : options.ps) {
    shards.push_back({index, address,
                      std::move(placement.shards[shards.size()]),
                      TableSpecs(job.model())});
  }
  return shards;
}

std::map<TaskId, std::string> Tasks(const ChiefTaskOptions& options) {
  // An evaluator need not be in the cluster spec.
  std::map<TaskId, std::string> tasks = {{{"evaluator", 0}, options.evaluator}};
  for (const auto& [index, address] : options.ps) {
    tasks[{"ps", index}] = address;
  }
  for (const auto& [index, address] : options.workers) {
    tasks[{"worker", index}] = address;
  }
  return tasks;
}

std::vector<durable::PlaceEpoch> PlaceEpochs(const LoadOrder& order) {
  std::vector<durable::PlaceEpoch> places;
  for (const auto& [index, epoch] : order.ps_epochs) {
    durable::PlaceEpoch& place = places.emplace_back();
    place.set_index(index);
    place.set_place_epoch(epoch);
    const auto host = order.acting_hosts.find(index);
    if (host != order.acting_hosts.end()) place.set_acting_host(host->second);
  }
  return places;
}

std::vector<durable::PlaceEpoch> StandbysOf(const StandbyBoard::Kept& kept) {
  std::vector<durable::PlaceEpoch> places;
  for (const auto& [index, standby] : kept) {
    durable::PlaceEpoch& place = places.emplace_back();
    place.set_index(index);
    place.set_standby(standby);
    // The next ps has it.
    const auto host = kept.upper_bound(index);
    place.set_standby_index(host == kept.end() ? kept.begin()->first
                                               : host->first);
  }
  return places;
}

}  // namespace

void ChiefTaskOptions::UseJob(LoadedJob loaded) {
  job = std::move(loaded.job);
  variables = std::move(loaded.graph.variables);
}

absl::Status ChiefTaskOptions::UseCluster(const TaskConfig& config) {
  if (!config.cluster.has_value() || !config.is_chief) {
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG: ", RoleName(config.role), "/", config.index,
                     " is not the chief of a cluster"));
  }
  RETURN_IF_ERROR(CheckChiefHasPs(config));
  RETURN_IF_ERROR(FitToCluster(config, variables.size(), job));
  ps = config.cluster->tasks(Role::kPs);
  if (IsMultiWorkerMirrored(job)) {
    if (state_address.empty()) {
      return absl::InvalidArgumentError(
          "--state_address: missing; the worker beside this chief gives it");
    }
    state_place = 0;
    ps[0] = state_address;
  }
  workers = config.cluster->tasks(Role::kWorker);
  const auto evaluators = config.cluster->tasks(Role::kEvaluator);
  if (!evaluators.empty()) evaluator = evaluators.begin()->second;
  if (IsHybrid(job)) {
    RETURN_IF_ERROR(UseWorkersVariables());
  }
  address = config.address;
  listen_address = RpcServer::ListenAddress(config.address);
  return absl::OkStatus();
}

absl::Status ChiefTaskOptions::UseWorkersVariables() {
  RETURN_IF_ERROR(CheckHasVariables(job, variables.size()));
  RETURN_IF_ERROR(CheckHasWorkerZero(job, workers));
  state_place = StatePlace(ps);
  ps[*state_place] = state_address.empty() ? workers.at(0) : state_address;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChiefTask>> ChiefTask::Start(
    const ChiefTaskOptions& options, Clock& clock, MetricsRegistry& metrics) {
  if (options.ps.empty() || options.workers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has ", options.ps.size(), " ps and ",
                     options.workers.size(), " workers"));
  }
  RETURN_IF_ERROR(CheckDescriptorsSuffice(options));
  std::unique_ptr<ChiefTask> task(new ChiefTask(options, clock, metrics));
  ASSIGN_OR_RETURN(task->rpc_server_,
                   RpcServer::Start(options.listen_address, task->service_,
                                    {.trust = options.trust}));
  LOG(INFO) << "listening on port " << task->port();
  RETURN_IF_ERROR(task->Open());
  task->rpc_server_->SetServing(true);
  return task;
}

Rights ChiefTask::RightsOf(const ChiefTaskOptions& options) {
  Rights::Options rights;
  if (AllReduceOf(options.job) != nullptr) {
    rights.state_place = options.ps.rbegin()->first;
  }
  return Rights(std::move(rights));
}

absl::StatusOr<Coordinator::Options> ChiefTask::CoordinatorOptions() const {
  Coordinator::Options coordinator;
  coordinator.job = options_.job;
  RETURN_IF_ERROR(FillClusterDefaults(
      coordinator.job, static_cast<int>(options_.workers.size())));
  RETURN_IF_ERROR(CheckRateCanBeReduced(coordinator.job));
  coordinator.tasks = Tasks(options_);
  coordinator.ends_with_workers = options_.ends_with_workers;
  coordinator.has_elastic_workers = options_.has_elastic_workers;
  coordinator.lease = options_.lease;
  coordinator.pace = options_.pace;
  coordinator.absence_named = options_.absence_named;
  coordinator.ps_timeout = options_.ps_timeout;
  coordinator.worker_timeout = options_.worker_timeout;
  coordinator.checkpoint_timeout = options_.checkpoint_timeout;
  coordinator.finish_timeout = options_.finish_timeout;
  coordinator.is_mirrored = AllReduceOf(coordinator.job) != nullptr;
  coordinator.state_place = options_.ps.rbegin()->first;
  coordinator.group_secret = RandomSecret();
  ASSIGN_OR_RETURN(coordinator.contents,
                   ContentsOf(options_.variables, options_.job));
  ASSIGN_OR_RETURN(coordinator.shards, PlaceShards(options_, coordinator.job));
  ASSIGN_OR_RETURN(coordinator.layout,
                   LayoutOf(coordinator.job, coordinator.shards));
  return coordinator;
}

std::unique_ptr<OrderExecutor> ChiefTask::MakeExecutor(
    const Coordinator::Options& coordinator, CheckpointStore store) {
  std::vector<std::unique_ptr<PsClient>> clients;
  for (const ShardBoard::Shard& shard : coordinator.shards) {
    clients.push_back(
        PsClient::Create(shard.address, options_.shard_call_deadline,
                         shard.ps_index == options_.state_place
                             ? Callee::StateKeeper(options_.trust)
                             : Callee::Ps(options_.trust, shard.ps_index)));
  }
  return std::make_unique<OrderExecutor>(
      coordinator, std::move(clients), std::move(store),
      OrderExecutor::Directory{
          .check_owner = [this] { return ownership_->Check(); },
          .look_at_owner =
              [this] { return ownership_->CheckWithin(kOwnerLook); },
          .record_places =
              [this, run_id = coordinator.run_id](const LoadOrder& order) {
                return ownership_->Record(run_id, PlaceEpochs(order));
              },
          .record_standbys =
              [this,
               run_id = coordinator.run_id](const StandbyBoard::Kept& kept) {
                return ownership_->RecordStandbys(run_id, StandbysOf(kept));
              }});
}

ProgressPoster::Options ChiefTask::PosterOptions() {
  return {.status = [this] { return server_->GetStatus({}).value(); },
          .post =
              [server = *options_.trainer_server](
                  const std::string& body, absl::Duration timeout,
                  const std::atomic<bool>& cancelled) {
                return PostJson(server, body, timeout, cancelled);
              }};
}

absl::Status ChiefTask::PrepareToFollow(const std::string& directory,
                                        Coordinator::Options& coordinator) {
  RETURN_IF_ERROR(ResumeFollowed(coordinator));
  if (!coordinator.followed || coordinator.already_complete) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(coordinator.job.model()));
  ASSIGN_OR_RETURN(ModelInputs inputs,
                   TrainingInputsOf(coordinator.job.model(), graph));
  FollowedLogLimits limits;
  if (FollowedTopic(coordinator.job.train())) limits.lines = kMostSlices;
  ASSIGN_OR_RETURN(FollowedLog log,
                   FollowedLog::Open(directory, coordinator.run_id,
                                     *coordinator.followed, limits));
  RETURN_IF_ERROR(CheckFollowed(coordinator));
  std::shared_ptr<TopicSource> topic;
  if (const auto uri = FollowedTopic(coordinator.job.train())) {
    ASSIGN_OR_RETURN(topic, TopicSource::Open(*uri, coordinator.job.train()));
  }
  follower_ = std::make_unique<DataFollower>(
      DataFollower::Options{
          .dataset = coordinator.job.train(),
          .inputs = std::move(inputs),
          .data_dir = options_.data_dir,
          .on_look =
              [this](const FollowedLook& look) {
                return server_->Follow(look);
              },
          .check_owner = [this] { return ownership_->Check(); },
          .topic = std::move(topic)},
      std::move(log), *coordinator.followed, clock_);
  return absl::OkStatus();
}

absl::Status ChiefTask::Open() {
  ASSIGN_OR_RETURN(Coordinator::Options coordinator, CoordinatorOptions());
  ASSIGN_OR_RETURN(const std::string directory, CheckpointDirectory(options_));
  ASSIGN_OR_RETURN(TakenRun run,
                   TakeRun({.directory = directory,
                            .variables = options_.variables,
                            .first_values = options_.first_values,
                            .directory_lease = options_.directory_lease,
                            .full_limit = options_.checkpoint_timeout,
                            .cancelled = options_.cancelled,
                            .on_trouble =
                                [this](absl::string_view trouble) {
                                  gate_.SetTrouble(trouble);
                                }},
                           clock_, clock_, coordinator));
  ownership_ = std::move(run.ownership);
  RETURN_IF_ERROR(PrepareToFollow(directory, coordinator));

  std::unique_ptr<OrderExecutor> executor =
      MakeExecutor(coordinator, std::move(run.store));
  EvaluationWatch::Options watch = {
      .checkpoint_directory = executor->store().directory(),
      .run_id = coordinator.run_id,
      .history = RunHistory(coordinator.resumed, coordinator.chief_epoch),
      .interval = WatchInterval(executor->store().directory(),
                                coordinator.job.evaluation().has_max_lag()),
      .on_change = [this](const std::vector<Evaluation>& evaluations) {
        if (poster_ != nullptr && !evaluations.empty()) {
          poster_->Evaluated(evaluations.back());
        }
        server_->Evaluated(evaluations);
      }};
  ProgressWriter::Options progress = {
      .status = [this] { return server_->GetStatus({}).value(); },
      .journal = {.checkpoint_directory = executor->store().directory(),
                  .run_id = coordinator.run_id,
                  .first_step = coordinator.resumed
                                    ? coordinator.resumed->global_step()
                                    : 0,
                  .outputs = OutputNames(coordinator.job.model()),
                  .has_event_files = coordinator.job.tensorboard(),
                  .check_owner = [this] { return ownership_->Check(); }},
      .summary = coordinator.job.summary(),
      .check_owner = [this] { return ownership_->Check(); }};
  const bool has_evaluations = coordinator.job.has_eval();
  ChiefServer::Options server;
  server.coordinator = std::move(coordinator);
  server.heartbeat_interval = options_.heartbeat_interval;
  server.address = options_.address;
  server.metrics_address = options_.metrics_address;
  server.page = options_.page;
  server.look_at_evaluations = [this] {
    if (evaluations_ != nullptr) evaluations_->Look();
  };
  server_ = std::make_unique<ChiefServer>(
      std::move(server), std::move(executor), clock_, metrics_);
  if (options_.trainer_server) {
    poster_ = std::make_unique<ProgressPoster>(PosterOptions(), clock_);
  }
  if (has_evaluations) {
    evaluations_ = std::make_unique<EvaluationWatch>(std::move(watch), clock_);
  }
  server_->Start();
  if (follower_ != nullptr) follower_->Start();
  progress_ = std::make_unique<ProgressWriter>(std::move(progress), clock_);
  ownership_->OnLost(
      [this](absl::Status lost) { server_->End(std::move(lost)); });
  gate_.Open(*server_);
  return absl::OkStatus();
}

ChiefTask::~ChiefTask() {
  if (server_ != nullptr) server_->EndWaits();
  if (rpc_server_ != nullptr) rpc_server_->Stop(absl::ZeroDuration());
  if (ownership_ != nullptr) ownership_->StopRenewal();
  if (evaluations_ != nullptr) evaluations_->Stop();
  if (follower_ != nullptr) follower_->Stop();
  poster_.reset();
  progress_.reset();
  // It may be writing a checkpoint: the directory is another's only then.
  server_.reset();
}

absl::Status ChiefTask::Wait() {
  const absl::Status outcome = server_->Wait();
  rpc_server_->Stop(kRpcGrace);
  return outcome;
}

}  // namespace parasol
