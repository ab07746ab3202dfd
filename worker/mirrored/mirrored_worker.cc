#include "worker/mirrored/mirrored_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/job/strategy.h"

namespace parasol {

namespace {

std::string Describe(const job::Job& job) {
  const job::MultiWorkerMirrored& strategy =
      job.strategy().multi_worker_mirrored();
  return absl::StrCat(
      "strategy multi_worker_mirrored, ",
      job::MultiWorkerMirrored::Communication_Name(strategy.communication()),
      ", packs of ", strategy.bytes_per_pack(),
      " bytes: ", job.parameter_server().synchronous().total_replicas(),
      " replicas in sync, each with a batch of ", job.train().batch_size());
}

}  // namespace

absl::Status CheckHasPlace(const job::Job& job, bool has_place) {
  const bool is_mirrored = IsMultiWorkerMirrored(job);
  if (is_mirrored == has_place) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the chief trains the job ", is_mirrored ? "without" : "with",
      " ps, but this worker's cluster has ", is_mirrored ? "some" : "none",
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
           .chief_timeout = own.chief_timeout},
          clock, metrics));
  return worker;
}

absl::Status MirroredWorker::Prepare(std::vector<VariableSpec> variables,
                                     const wire::RegisterResponse& registration,
                                     const std::string& device,
                                     std::function<bool()> cancelled) {
  LOG(INFO) << Describe(registration.job()) << ", this worker's on " << device;
  state_ = std::make_unique<MirroredState>(std::move(variables),
                                           registration.job(), clock_);
  // What is wrong with the job is told before anybody waits.
  RETURN_IF_ERROR(state_->MakeParameters().status());
  if (keeper_ == nullptr) return absl::OkStatus();
  return keeper_->Join(*state_, registration, std::move(cancelled));
}

std::unique_ptr<MirroredParameters> MirroredWorker::MakeParameters() {
  const job::Job& job = state_->job();
  MirroredParameters::Options options;
  options.task = options_.task;
  options.replicas = job.parameter_server().synchronous().total_replicas();
  options.bytes_per_pack =
      job.strategy().multi_worker_mirrored().bytes_per_pack();
  return std::make_unique<MirroredParameters>(
      std::move(options), *state_, *options_.place.endpoint, clock_, metrics_);
}

void MirroredWorker::Leave() {
  if (keeper_ != nullptr) keeper_->Leave();
}

}  // namespace parasol
