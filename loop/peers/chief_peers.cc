#include "loop/peers/chief_peers.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "loop/peers/local_steps.h"
#include "loop/peers/program_status.h"
#include "worker/store/parameter_store.h"

namespace parasol {
namespace {

absl::Status LeadsOnly() {
  return absl::CancelledError(
      "this process is the cluster's chief: it runs no step of the program");
}

}  // namespace

ChiefPeers::ChiefPeers(Options options, Clock& clock)
    : LocalPeers(options.replicas),
      options_(std::move(options)),
      clock_(clock) {}

ChiefPeers::~ChiefPeers() = default;

absl::StatusOr<int64_t> ChiefPeers::Begin(ParameterStore& store,
                                          const std::vector<std::string>&) {
  has_led_ = true;
  outcome_ = Lead(store);
  return LeadsOnly();
}

absl::Status ChiefPeers::Lead(ParameterStore& store) {
  if (options_.settings.checkpoint_directory.empty()) {
    return absl::InvalidArgumentError(
        "--checkpoint_dir: is not set, but needed: ps load what a program "
        "begins with from a checkpoint");
  }
  RETURN_IF_ERROR(
      CheckGoesOnWith(local_steps(), options_.settings.checkpoint_directory));
  ChiefTaskOptions options;
  options.job = JobOfProgram(store.job(), options_.settings, end());
  options.variables = store.variables().specs();
  options.first_values = [&store](ShardWriter& writer) {
    return store.Save(writer);
  };
  options.ends_with_workers = true;
  options.ps_timeout = options_.peer_timeout;
  options.worker_timeout = options_.peer_timeout;
  options.checkpoint_timeout = options_.settings.checkpoint_timeout;
  options.trust = options_.trust;
  options.metrics_address = options_.settings.metrics_address;
  if (options_.settings.status != nullptr) {
    options.page = &options_.settings.status->page();
  }
  options.cancelled = [this] { return stopping_.load(); };
  RETURN_IF_ERROR(options.UseCluster(options_.config));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ChiefTask> started,
      ChiefTask::Start(options, clock_,
                       MetricsOf(options_.settings, own_metrics_)));
  ChiefTask* const task = started.get();
  {
    absl::MutexLock lock(&mu_);
    task_ = std::move(started);
    if (stopping_) task->Stop();
  }
  const absl::Status outcome = task->Wait();
  absl::MutexLock lock(&mu_);
  task_.reset();  // `store` may go
  return outcome;
}

absl::StatusOr<bool> ChiefPeers::Commit(const Iteration&, ParameterStore&) {
  return LeadsOnly();
}

absl::Status ChiefPeers::End(const absl::Status& result) {
  return has_led_ ? outcome_ : result;
}

void ChiefPeers::Stop() {
  stopping_ = true;
  absl::MutexLock lock(&mu_);
  if (task_ != nullptr) task_->Stop();
}

}  // namespace parasol
