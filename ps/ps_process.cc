#include "ps/ps_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/rpc/server.h"

namespace parasol {
namespace {

// After a task that could not act.
constexpr absl::Duration kActAgain = absl::Seconds(1);
constexpr absl::Duration kLook = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<PsProcess>> PsProcess::Start(
    const Options& options, Clock& clock, MetricsRegistry& metrics) {
  std::unique_ptr<PsProcess> process(new PsProcess(options, clock, metrics));
  PsTaskOptions own = options.task;
  own.on_answer = [process =
                       process.get()](const wire::HeartbeatResponse& answer) {
    if (answer.act_for().empty()) return;
    absl::MutexLock lock(&process->mu_);
    process->orders_.assign(answer.act_for().begin(), answer.act_for().end());
    process->has_news_ = true;
  };
  own.on_lost_primary = [process = process.get()] {
    absl::MutexLock lock(&process->mu_);
    process->questions_.NoteLost(process->clock_.Now());
    process->has_news_ = true;
  };
  ASSIGN_OR_RETURN(process->own_, PsTask::Start(own, clock, metrics));
  process->thread_ = std::thread([process = process.get()] { process->Run(); });
  return process;
}

PsProcess::PsProcess(const Options& options, Clock& clock,
                     MetricsRegistry& metrics)
    : options_(options),
      clock_(clock),
      acting_for_(metrics.AddGauge(
          "parasol_ps_acting_for",
          "Index of the lost ps that this process acts for; -1: none.")) {
  acting_for_.Set(-1);
}

PsProcess::~PsProcess() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::shared_ptr<Acting> acting;
  {
    absl::MutexLock lock(&mu_);
    acting = std::exchange(acting_, nullptr);
  }
  acting.reset();
  own_.reset();
}

std::shared_ptr<PsProcess::Acting> PsProcess::acting() const {
  absl::MutexLock lock(&mu_);
  return acting_;
}

void PsProcess::StopActing() {
  const std::shared_ptr<Acting> acting = this->acting();
  if (acting == nullptr) return;
  acting->task->Stop();
  acting->task->Wait().IgnoreError();
}

absl::Status PsProcess::Wait() {
  const absl::Status result = own_->Wait();
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  StopActing();
  return result;
}

void PsProcess::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  // One checkpoint has the updates of both.
  std::thread other([this] { StopActing(); });
  own_->Stop();
  other.join();
}

void PsProcess::Run() {
  while (true) {
    std::vector<wire::ActingOrder> orders;
    bool asks;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_ending_ || has_news_;
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_work),
                              std::clamp(questions_.next() - clock_.Now(),
                                         absl::ZeroDuration(), kLook));
      if (is_ending_) return;
      has_news_ = false;
      asks = questions_.Take(clock_.Now());
    }
    LookAtActing();
    if (asks) AskForLost();
    {
      absl::MutexLock lock(&mu_);
      orders = std::exchange(orders_, {});
    }
    for (const wire::ActingOrder& order : orders) Act(order);
  }
}

void PsProcess::AskForLost() {
  wire::HeartbeatRequest request;
  for (wire::LostPrimary& lost : own_->standbys().LostPrimaries()) {
    *request.add_lost_primary() = std::move(lost);
  }
  if (request.lost_primary().empty()) return;
  // The answer comes through the task's on_answer, as all do.
  own_->Tell(std::move(request)).IgnoreError();
}

void PsProcess::Act(const wire::ActingOrder& order) {
  {
    absl::MutexLock lock(&mu_);
    if (is_stopping_ || acting_ != nullptr || clock_.Now() < next_act_) return;
  }
  // The chief will hear that it is gone when it asks for it.
  if (order.number() != 0 && !own_->standbys().MayAct(order.number())) return;
  next_act_ = clock_.Now() + kActAgain;
  const absl::Status begun = Begin(order);
  if (!begun.ok()) {
    LOG(WARNING) << "can't act for ps/" << order.ps_index() << ": "
                 << begun.message();
  }
}

PsTaskOptions PsProcess::OptionsFor(const wire::ActingOrder& order) {
  PsTaskOptions options = options_.task;
  options.task.set_index(order.ps_index());
  options.task.set_incarnation(NewIncarnation());
  options.task.set_host_index(options_.task.task.index());
  options.listen_address = RpcServer::ListenAddress(
      WithPort(options_.address, options_.acting_port));
  options.metrics_address.clear();
  options.payload_port = std::min(options.payload_port, 0);
  options.acting = PsTaskOptions::Acting{.standbys = &own_->standbys(),
                                         .order = order.number(),
                                         .address = options_.address};
  options.on_answer = [this](const wire::HeartbeatResponse& answer) {
    if (!answer.may_leave()) return;
    absl::MutexLock lock(&mu_);
    may_leave_ = true;
    has_news_ = true;
  };
  options.on_end = [this] {
    absl::MutexLock lock(&mu_);
    has_ended_ = true;
    has_news_ = true;
  };
  return options;
}

absl::Status PsProcess::Begin(const wire::ActingOrder& order) {
  const auto acting = std::make_shared<Acting>();
  acting->ps_index = order.ps_index();
  PsTaskOptions options = OptionsFor(order);
  if (!options_.acting_metrics_address.empty()) {
    ASSIGN_OR_RETURN(acting->metrics,
                     MetricsServer::Start(options_.acting_metrics_address,
                                          acting->registry));
    options.metrics_address =
        WithPort(options_.address, acting->metrics->port());
  }
  {
    absl::MutexLock lock(&mu_);
    may_leave_ = false;
    has_ended_ = false;
  }
  LOG(INFO) << "acting for ps/" << order.ps_index()
            << ", which is lost; its shard has no standby until it is back";
  ASSIGN_OR_RETURN(acting->task,
                   PsTask::Start(options, clock_, acting->registry));
  acting_for_.Set(order.ps_index());
  bool is_stopping;
  {
    absl::MutexLock lock(&mu_);
    acting_ = acting;
    is_stopping = is_stopping_;
  }
  if (is_stopping) acting->task->Stop();
  return absl::OkStatus();
}

void PsProcess::LookAtActing() {
  std::shared_ptr<Acting> acting;
  bool has_ended;
  bool may_leave;
  {
    absl::MutexLock lock(&mu_);
    acting = acting_;
    has_ended = has_ended_;
    may_leave = std::exchange(may_leave_, false);
  }
  if (acting == nullptr) return;
  // What it has been told is old if its shard takes pushes again.
  if (!has_ended && may_leave && acting->task->stays()) {
    LOG(INFO) << "ps/" << acting->ps_index
              << " is back, and goes on with the checkpoint";
    acting->task->Stop();
    has_ended = true;
  }
  if (!has_ended) return;
  const absl::Status ended = acting->task->Wait();
  if (!ended.ok() && !absl::IsCancelled(ended)) {
    LOG(WARNING) << "acts for ps/" << acting->ps_index
                 << " no more: " << ended.message();
  }
  acting_for_.Set(-1);
  {
    absl::MutexLock lock(&mu_);
    acting_ = nullptr;
  }
  acting.reset();
}

}  // namespace parasol
