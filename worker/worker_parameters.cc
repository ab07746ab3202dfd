#include "worker/worker_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "cluster/job/strategy.h"
#include "ml/device/device_peer.h"
#include "ml/model/device_training.h"
#include "worker/group/peer_model.h"
#include "worker/last_answers.h"

namespace parasol {
namespace {

std::string DescribeGroup(const job::Job& job, const Composition& composition) {
  const job::MultiWorkerMirrored& peers = *AllReduceOf(job);
  const std::string tables =
      composition.has_ps()
          ? absl::StrCat(
                ", ",
                job::Hybrid::Tables_Name(job.strategy().hybrid().tables()),
                " tables on ps")
          : "";
  const std::string sums =
      peers.has_custom()
          ? absl::StrCat("custom all-reduce ", peers.custom().type())
          : job::MultiWorkerMirrored::Communication_Name(peers.communication());
  return absl::StrCat(
      "strategy ", StrategyName(*StrategyOf(job)), ", ", sums, ", packs of ",
      peers.bytes_per_pack(), " bytes", tables, ": ",
      job.parameter_server().synchronous().total_replicas(),
      " replicas in sync, each with a batch of ", job.train().batch_size());
}

// Returns the number of devices in whose memory the models' updates can be
// made.
int CountUpdating(const std::vector<WorkerDevice>& devices) {
  return static_cast<int>(std::count_if(
      devices.begin(), devices.end(), [](const WorkerDevice& opened) {
        return opened.model->device_training() != nullptr;
      }));
}

bool TrainsAny(const std::vector<VariableSpec>& variables) {
  return std::any_of(
      variables.begin(), variables.end(),
      [](const VariableSpec& variable) { return !variable.frozen; });
}

// Returns OK if NCCL can add on the device, if the job wants that.
absl::Status CheckNccl(const job::Job& job, const Composition& composition,
                       Device& device) {
  const absl::Status found = DevicePeer::Check(device);
  if (found.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy.", StrategyName(*StrategyOf(job)),
      composition.has_ps() ? ".all_reduce" : "",
      ".communication: ", found.message(),
      "; give each worker --device=cuda:N and NCCL 2, or choose AUTO"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerParameters>> WorkerParameters::Start(
    Options options, Clock& clock, MetricsRegistry& metrics) {
  std::unique_ptr<WorkerParameters> parameters(
      new WorkerParameters(std::move(options), clock, metrics));
  const Options& own = parameters->options_;
  if (!own.place || own.place->state_listen_address.empty()) return parameters;
  ASSIGN_OR_RETURN(
      parameters->keeper_,
      StateKeeper::Start(
          {.listen_address = own.place->state_listen_address,
           .chief_address = own.chief_address,
           .task = absl::StrCat(own.task.role(), "/", own.task.index()),
           .incarnation = NewIncarnation(),
           .place = own.place->state_place,
           .chief_timeout = own.chief_timeout,
           .trust = own.trust,
           .on_lost = own.on_lost},
          clock, metrics));
  return parameters;
}

void WorkerParameters::Describe(wire::RegisterRequest& request) const {
  if (!options_.place) return;
  request.set_collective_address(options_.place->collective_address);
}

absl::Status WorkerParameters::CheckHasPlace() const {
  const std::optional<GroupPlace>& place = options_.place;
  const bool fits =
      place ? composition_.has_group() && composition_.has_ps() == place->has_ps
            : !composition_.has_group();
  if (fits) return absl::OkStatus();
  const StrategyKind own = !place          ? StrategyKind::kParameterServer
                           : place->has_ps ? StrategyKind::kHybrid
                                           : StrategyKind::kMultiWorkerMirrored;
  return absl::InvalidArgumentError(absl::StrCat(
      "the chief trains the job under ",
      StrategyName(StrategyOf(job_).value_or(StrategyKind::kParameterServer)),
      ", but this worker was started for ", StrategyName(own),
      ": give all tasks the same TF_CONFIG and --strategy"));
}

absl::Status WorkerParameters::Choose(const job::Job& job) {
  job_ = job;
  composition_ = Compose(job_, {.is_in_cluster = true});
  return CheckHasPlace();
}

absl::Status WorkerParameters::Prepare(
    const wire::RegisterResponse& registration,
    std::vector<WorkerDevice>& devices, std::function<bool()> cancelled) {
  variables_ = devices.front().model->variables();
  composition_ = Compose(job_, {.is_in_cluster = true,
                                .devices = static_cast<int>(devices.size()),
                                .updating_devices = CountUpdating(devices),
                                .trains_variables = TrainsAny(variables_)});
  if (!composition_.has_group()) return absl::OkStatus();
  const job::MultiWorkerMirrored& peers = *AllReduceOf(job_);
  if (peers.communication() == job::MultiWorkerMirrored::NCCL) {
    for (WorkerDevice& opened : devices) {
      RETURN_IF_ERROR(CheckNccl(job_, composition_, *opened.device));
      RETURN_IF_ERROR(KeepOnDevice(opened));
    }
  }
  LOG(INFO) << DescribeGroup(job_, composition_) << ", this worker's on "
            << DescribeDevices(devices);
  state_ = std::make_unique<GroupState>(
      variables_, job_, clock_, composition_.rows, variables_on_device_.get());
  // What is wrong with the job is told before anybody waits.
  RETURN_IF_ERROR(state_->MakeParameters().status());
  ASSIGN_OR_RETURN(planner_, MakeAllReducePlanner(peers));
  if (keeper_ == nullptr) return absl::OkStatus();
  return keeper_->Join(*state_, registration, std::move(cancelled));
}

absl::Status WorkerParameters::KeepOnDevice(WorkerDevice& opened) {
  if (!composition_.has_parts()) {
    LOG(INFO) << "NCCL has nothing to add: no variable is trained, and the "
              << "gradients of sparse tables travel through the host";
    return absl::OkStatus();
  }
  DeviceTraining* const training = opened.model->device_training();
  CHECK(training != nullptr) << "replicas in step clip no gradients";
  const bool values_stay = composition_.store == Store::kDevices;
  // The sum leaves the first device alone.
  ASSIGN_OR_RETURN(on_devices_.emplace_back(),
                   DeviceGradients::Create(
                       *opened.device, *training, variables_,
                       {.bytes_per_pack = AllReduceOf(job_)->bytes_per_pack(),
                        .fetches_sum = on_devices_.empty() && !values_stay}));
  if (values_stay) {
    ASSIGN_OR_RETURN(
        variables_on_device_,
        DeviceVariables::Create(variables_, job_,
                                {{training, opened.device.get(),
                                  &on_devices_.back()->device_mutex()}}));
    LOG(INFO) << "the variables are on " << opened.device->name()
              << ", which updates them";
  } else if (on_devices_.size() == 1) {
    LOG(INFO) << "the variables are in host memory, and are updated there: "
              << composition_.why_host;
  }
  ASSIGN_OR_RETURN(opened.model,
                   KeepGradientsOnDevice(std::move(opened.model),
                                         *on_devices_.back(), values_stay));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParameterClient>> WorkerParameters::MakeClient(
    const wire::GetPlacementResponse& placement) {
  ParameterClient::Options options;
  options.trace = options_.trace;
  options.worker_incarnation = options_.task.incarnation();
  options.shard_timeout = options_.ps_timeout;
  options.trust = options_.trust;
  options.wire_encoding = job_.parameter_server().wire_encoding();
  options.push_share = job_.parameter_server().push_share();
  const job::WorkerSettings::PayloadLanes lanes = job_.worker().payload_lanes();
  options.shared_memory = lanes == job::WorkerSettings::AUTO ||
                          lanes == job::WorkerSettings::SHARED_MEMORY;
  options.tcp_lanes =
      lanes == job::WorkerSettings::AUTO || lanes == job::WorkerSettings::TCP;
  std::vector<std::string> names;
  if (composition_.store == Store::kPs) {
    for (const VariableSpec& variable : variables_) {
      names.push_back(variable.name);
    }
  }
  std::vector<std::string> tables;
  for (const job::SparseTable& table : job_.model().sparse_table()) {
    tables.push_back(table.name());
  }
  return ParameterClient::Create(placement, std::move(names), std::move(tables),
                                 options, clock_, metrics_);
}

GroupParameters::Options WorkerParameters::GroupOptions() const {
  GroupParameters::Options options;
  options.task = options_.task;
  options.replicas = job_.parameter_server().synchronous().total_replicas();
  options.bytes_per_pack = AllReduceOf(job_)->bytes_per_pack();
  options.planner = planner_;
  for (const auto& gradients : on_devices_) {
    options.on_devices.push_back(gradients.get());
  }
  options.variables_on_device = variables_on_device_.get();
  return options;
}

absl::StatusOr<std::unique_ptr<TrainingParameters>> WorkerParameters::Make(
    const wire::GetPlacementResponse& placement) {
  std::unique_ptr<ParameterClient> client;
  if (composition_.has_ps()) {
    ASSIGN_OR_RETURN(client, MakeClient(placement));
    client_ = client.get();
  }
  if (!composition_.has_group()) return client;
  GroupParameters::Options options = GroupOptions();
  options.tables = std::move(client);
  options.tables_in_step = composition_.rows_in_step;
  auto group = std::make_unique<GroupParameters>(
      std::move(options), *state_, *options_.place->endpoint, clock_, metrics_);
  group_ = group.get();
  return group;
}

void WorkerParameters::SetUp(SyncTrainingLoop::Options& options) const {
  options.step_timeout = options_.ps_timeout;
  if (!composition_.has_group()) {
    options.last_push_limit = kLastPushLimit;
    options.pulls_ahead = true;
    return;
  }
  const absl::Duration limit =
      absl::Seconds(AllReduceOf(job_)->timeout_seconds());
  options.step_timeout =
      composition_.has_ps() ? std::max(limit, options_.ps_timeout) : limit;
  if (composition_.has_parts()) options.parts = group_;
  options.values_stay_on_device = composition_.store == Store::kDevices;
}

void WorkerParameters::SetUp(ChiefReplicaSource::Options& options) const {
  if (!composition_.has_group()) return;
  options.on_answer = [group = group_](const wire::ClaimStepsResponse& answer) {
    group->Hear(answer);
  };
  options.completed_steps = [group = group_] { return group->steps(); };
  options.broken_assignment = [group = group_] { return group->broken(); };
}

void WorkerParameters::SetUp(PlacementFollower::Options& options) const {
  if (!composition_.has_ps()) return;
  options.on_placement =
      [client = client_](const wire::GetPlacementResponse& placement) {
        return client->Update(placement);
      };
  options.on_loading = [client = client_](absl::Span<const int> shards) {
    client->ShardsAreLoading(shards);
  };
  options.is_away = [client = client_] { return client->Unanswered().is_cut; };
}

void WorkerParameters::AwaitCheckpoint(absl::Duration limit) {
  if (keeper_ != nullptr && composition_.has_ps()) {
    keeper_->AwaitCheckpoint(limit);
  }
}

void WorkerParameters::Leave() {
  if (keeper_ != nullptr) keeper_->Leave();
}

}  // namespace parasol
