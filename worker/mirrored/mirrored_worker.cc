#include "worker/mirrored/mirrored_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "cluster/job/strategy.h"
#include "ml/device/device_peer.h"
#include "ml/model/device_training.h"
#include "worker/mirrored/peer_model.h"

namespace parasol {

namespace {

std::string Describe(const job::Job& job) {
  const job::MultiWorkerMirrored& peers = *AllReduceOf(job);
  const std::string tables =
      IsHybrid(job)
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

// Returns why the variables of a worker whose gradients NCCL adds are in host
// memory, in words for the log; empty: they need not be.
std::string WhyVariablesNeedTheHost(const job::Job& job) {
  if (AllReduceOf(job)->device_size() > 1) return "there are several devices";
  if (job.model().sparse_table_size() > 0) {
    return "the model has sparse tables";
  }
  return WhyUpdatesNeedTheHost(job);
}

}  // namespace

absl::Duration StepTimeoutOf(const job::Job& job, absl::Duration ps_timeout) {
  const job::MultiWorkerMirrored* const peers = AllReduceOf(job);
  if (peers == nullptr) return ps_timeout;
  const absl::Duration limit = absl::Seconds(peers->timeout_seconds());
  return IsHybrid(job) ? std::max(limit, ps_timeout) : limit;
}

absl::Status CheckHasPlace(const job::Job& job,
                           const std::optional<MirroredPlace>& place) {
  const StrategyKind chiefs =
      StrategyOf(job).value_or(StrategyKind::kParameterServer);
  const StrategyKind own = !place          ? StrategyKind::kParameterServer
                           : place->has_ps ? StrategyKind::kHybrid
                                           : StrategyKind::kMultiWorkerMirrored;
  if (chiefs == own) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the chief trains the job under ", StrategyName(chiefs),
                   ", but this worker was started for ", StrategyName(own),
                   ": give all tasks the same TF_CONFIG and --strategy"));
}

absl::StatusOr<std::unique_ptr<MirroredWorker>> MirroredWorker::Start(
    Options options, Clock& clock, MetricsRegistry& metrics) {
  std::unique_ptr<MirroredWorker> worker(
      new MirroredWorker(std::move(options), clock, metrics));
  const Options& own = worker->options_;
  if (own.place.state_listen_address.empty()) return worker;
  ASSIGN_OR_RETURN(
      worker->keeper_,
      StateKeeper::Start(
          {.listen_address = own.place.state_listen_address,
           .chief_address = own.chief_address,
           .task = absl::StrCat(own.task.role(), "/", own.task.index()),
           .incarnation = NewIncarnation(),
           .place = own.place.state_place,
           .chief_timeout = own.chief_timeout,
           .on_lost = own.on_lost},
          clock, metrics));
  return worker;
}

absl::StatusOr<std::unique_ptr<Model>> MirroredWorker::PrepareModel(
    const job::Job& job, std::unique_ptr<Model> model, Device& device) {
  const job::MultiWorkerMirrored* const peers = AllReduceOf(job);
  if (peers == nullptr ||
      peers->communication() != job::MultiWorkerMirrored::NCCL) {
    return model;
  }
  const absl::string_view setting =
      IsHybrid(job) ? "strategy.hybrid.all_reduce.communication: "
                    : "strategy.multi_worker_mirrored.communication: ";
  const absl::Status found = DevicePeer::Check(device);
  if (!found.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        setting, found.message(),
        "; give each worker --device=cuda:N and NCCL 2, or choose AUTO"));
  }
  if (std::all_of(
          model->variables().begin(), model->variables().end(),
          [](const VariableSpec& variable) { return variable.frozen; })) {
    LOG(INFO) << "NCCL has nothing to add: no variable is trained, and the "
              << "gradients of sparse tables travel through the host";
    return model;
  }
  DeviceTraining* const training = model->device_training();
  CHECK(training != nullptr) << "replicas in step clip no gradients";
  const std::string why_host = WhyVariablesNeedTheHost(job);
  // The sum leaves the first device alone.
  ASSIGN_OR_RETURN(
      on_devices_.emplace_back(),
      DeviceGradients::Create(
          device, *training, model->variables(),
          {.bytes_per_pack = peers->bytes_per_pack(),
           .fetches_sum = on_devices_.empty() && !why_host.empty()}));
  if (why_host.empty()) {
    ASSIGN_OR_RETURN(
        variables_on_device_,
        DeviceVariables::Create(
            model->variables(), job,
            {{training, &device, &on_devices_.back()->device_mutex()}}));
    LOG(INFO) << "the variables are on " << device.name() << ", which updates "
              << "them";
  } else if (on_devices_.size() == 1) {
    LOG(INFO) << "the variables are in host memory, and are updated there: "
              << why_host;
  }
  return KeepGradientsOnDevice(std::move(model), *on_devices_.back(),
                               /*values_stay=*/why_host.empty());
}

absl::Status MirroredWorker::Prepare(std::vector<VariableSpec> variables,
                                     const wire::RegisterResponse& registration,
                                     const std::string& device,
                                     std::function<bool()> cancelled) {
  LOG(INFO) << Describe(registration.job()) << ", this worker's on " << device;
  state_ = variables_on_device_ == nullptr
               ? std::make_unique<MirroredState>(std::move(variables),
                                                 registration.job(), clock_)
               : std::make_unique<MirroredState>(std::move(variables),
                                                 registration.job(), clock_,
                                                 *variables_on_device_);
  // What is wrong with the job is told before anybody waits.
  RETURN_IF_ERROR(state_->MakeParameters().status());
  ASSIGN_OR_RETURN(planner_,
                   MakeAllReducePlanner(*AllReduceOf(registration.job())));
  if (keeper_ == nullptr) return absl::OkStatus();
  return keeper_->Join(*state_, registration, std::move(cancelled));
}

MirroredParameters::Options MirroredWorker::ParametersOptions() const {
  const job::Job& job = state_->job();
  MirroredParameters::Options options;
  options.task = options_.task;
  options.replicas = job.parameter_server().synchronous().total_replicas();
  options.bytes_per_pack = AllReduceOf(job)->bytes_per_pack();
  options.planner = planner_;
  for (const auto& gradients : on_devices_) {
    options.on_devices.push_back(gradients.get());
  }
  options.variables_on_device = variables_on_device_.get();
  return options;
}

std::unique_ptr<MirroredParameters> MirroredWorker::MakeParameters() {
  return std::make_unique<MirroredParameters>(
      ParametersOptions(), *state_, *options_.place.endpoint, clock_, metrics_);
}

std::unique_ptr<HybridParameters> MirroredWorker::MakeHybridParameters(
    std::unique_ptr<ParameterClient> tables) {
  return std::make_unique<HybridParameters>(
      ParametersOptions(), *state_, *options_.place.endpoint, std::move(tables),
      clock_, metrics_);
}

void MirroredWorker::Leave() {
  if (keeper_ != nullptr) keeper_->Leave();
}

}  // namespace parasol
