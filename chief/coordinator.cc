#include "chief/coordinator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "chief/replica_plan.h"
#include "chief/steps/step_ledger.h"
#include "chief/task_message.h"

namespace parasol {
namespace {

constexpr absl::Duration kLoadRetry = absl::Seconds(1);
// What finish_timeout shrinks to when the chief itself is told to go.
constexpr absl::Duration kStopGrace = absl::Seconds(5);

// Names in one message or log line.
constexpr size_t kMaxNamed = 16;

std::vector<TaskId> Places(const std::map<TaskId, std::string>& tasks) {
  std::vector<TaskId> places;
  for (const auto& [id, address] : tasks) places.push_back(id);
  return places;
}

// The task's place among those of its role, as indices may have gaps.
int RankOf(const wire::Task& task, const std::map<TaskId, std::string>& tasks) {
  const auto first = tasks.lower_bound(TaskId{task.role(), 0});
  return static_cast<int>(
      std::distance(first, tasks.lower_bound(TaskId::Of(task))));
}

std::unique_ptr<StepPlan> PlanOf(const Coordinator::Options& options,
                                 absl::Time now) {
  const auto& resumed = options.resumed;
  const job::ParameterServerStrategy& strategy = options.job.parameter_server();
  if (strategy.has_synchronous()) {
    return std::make_unique<ReplicaPlan>(
        strategy.synchronous().total_replicas(), absl::ToUnixMicros(now),
        resumed ? std::optional<int64_t>(resumed->global_step())
                : std::nullopt);
  }
  StepLedger::Options ledger;
  ledger.first_version = absl::ToUnixMicros(now);
  if (strategy.has_bounded_staleness()) {
    ledger.bound = strategy.bounded_staleness().bound();
  }
  return resumed ? std::make_unique<StepLedger>(*resumed, ledger)
                 : std::make_unique<StepLedger>(ledger);
}

std::string NamesOf(const std::vector<TaskId>& tasks) {
  std::vector<std::string> names;
  for (const TaskId& task : tasks) {
    if (names.size() == kMaxNamed) {
      names.push_back(absl::StrCat(tasks.size() - kMaxNamed, " more"));
      break;
    }
    names.push_back(task.ToString());
  }
  return absl::StrJoin(names, ", ");
}

// Refuses a process that names itself as one at another place: its steps would
// be those of both.
absl::Status CheckIncarnation(
    const wire::Task& task,
    const std::map<TaskId, Membership::Member>& members) {
  for (const auto& [id, member] : members) {
    if (member.incarnation == task.incarnation() && id != TaskId::Of(task) &&
        task.incarnation() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(TaskId::Of(task).ToString(), " has the incarnation of ",
                       id.ToString(), "; start it again"));
    }
  }
  return absl::OkStatus();
}

// A load that failed like this will fail again.
bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) ||
         absl::IsNotFound(status) || absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

Coordinator::Coordinator(Options options, absl::Time now)
    : options_(std::move(options)),
      membership_(Places(options_.tasks), options_.lease, now),
      board_(options_.shards, absl::ToUnixMicros(now)),
      plan_(PlanOf(options_, now)),
      end_(options_.job),
      schedule_(options_.job.checkpoint(),
                options_.resumed
                    ? std::optional<int64_t>(options_.resumed->global_step())
                    : std::nullopt,
                now),
      worker_places_(std::count_if(
          options_.tasks.begin(), options_.tasks.end(),
          [](const auto& task) { return task.first.role == "worker"; })),
      start_(now),
      last_tick_(now),
      phase_since_(now) {
  if (end_.step()) plan_->SetEnd(*end_.step());
  if (options_.already_complete) Enter(wire::COMPLETE, now);
}

absl::Status Coordinator::Register(const wire::RegisterRequest& request,
                                   absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  const wire::Task& task = request.task();
  RETURN_IF_ERROR(CheckIncarnation(task, membership_.members()));
  if (task.role() == "worker") {
    RETURN_IF_ERROR(plan_->Check(task.incarnation(), request.completed_steps(),
                                 request.completed_steps()))
        << TaskId::Of(task).ToString();
  }
  ASSIGN_OR_RETURN(const Membership::Registration registration,
                   membership_.Register(task, request.metrics_address(), now));
  if (registration.replaced) {
    Depart(TaskId::Of(task), *registration.replaced, now);
    if (task.role() == "worker") plan_->Retire(*registration.replaced);
  }
  if (task.role() == "ps") {
    const bool holds_run =
        options_.same_sharding && request.run_id() == options_.run_id;
    board_.Arrived(task.index(), task.incarnation(), holds_run);
  } else if (task.role() == "worker") {
    set_aside_.erase(task.incarnation());
    plan_->Enter(task.incarnation(), request.completed_steps());
    plan_->SetShardOf(task.incarnation(), RankOf(task, options_.tasks));
  }
  Advance(now);
  return absl::OkStatus();
}

absl::StatusOr<wire::HeartbeatResponse> Coordinator::Heartbeat(
    const wire::HeartbeatRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckTask(request.task()));
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  if (request.task().role() == "worker") reports_.Keep(request);
  Advance(now);
  wire::HeartbeatResponse response;
  response.set_phase(phase_);
  response.set_placement_version(board_.version());
  response.set_failure(failure_);
  for (std::string& task : MissingTasks()) {
    response.add_missing_task(std::move(task));
  }
  return response;
}

absl::StatusOr<wire::GetPlacementResponse> Coordinator::GetPlacement() const {
  return board_.Placement(options_.run_id);
}

absl::Status Coordinator::ReportFailure(
    const wire::ReportFailureRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckTask(request.task()));
  const absl::Status status = membership_.Renew(request.task(), now);
  if (!status.ok()) {
    // A lease that has just run out does not mend what the task has met.
    const auto it = membership_.members().find(TaskId::Of(request.task()));
    const bool is_lost = it != membership_.members().end() && it->second.lost &&
                         it->second.incarnation == request.task().incarnation();
    if (!absl::IsNotFound(status) || !is_lost) return status;
  }
  Fail(absl::StrCat(TaskId::Of(request.task()).ToString(), ": ",
                    FailureLine(request.message())),
       now);
  return absl::OkStatus();
}

absl::Status Coordinator::Leave(const wire::LeaveRequest& request,
                                absl::Time now) {
  RETURN_IF_ERROR(CheckTask(request.task()));
  const uint64_t incarnation = request.task().incarnation();
  const bool is_worker = request.task().role() == "worker";
  if (is_worker) {
    RETURN_IF_ERROR(plan_->Check(incarnation, request.completed_steps(),
                                 request.completed_steps()))
        << TaskId::Of(request.task()).ToString();
  }
  RETURN_IF_ERROR(membership_.Leave(request.task(), now));
  if (is_worker) plan_->Report(incarnation, request.completed_steps());
  Depart(TaskId::Of(request.task()), incarnation, now);
  if (is_worker) plan_->Retire(incarnation);
  Advance(now);
  return absl::OkStatus();
}

wire::JobStatus Coordinator::Status() const {
  wire::JobStatus status;
  status.set_phase(phase_);
  status.set_global_step(plan_->global_step());
  status.set_end_step(plan_->end_step().value_or(0));
  status.set_run_id(options_.run_id);
  status.set_examples_per_second(reports_.examples_per_second());
  if (reports_.loss()) status.set_loss(*reports_.loss());
  for (std::string& task : MissingTasks()) {
    status.add_missing_task(std::move(task));
  }
  status.set_failure(failure_);
  status.set_placement_skew(board_.Skew());
  for (std::string& task : AwaitedTasks()) {
    status.add_awaited_task(std::move(task));
  }
  for (const auto& [id, member] : membership_.members()) {
    wire::TaskStatus* task = status.add_task();
    task->mutable_task()->set_role(id.role);
    task->mutable_task()->set_index(id.index);
    task->set_address(options_.tasks.at(id));
    task->set_metrics_address(member.metrics_address);
    task->set_alive(member.alive);
  }
  return status;
}

std::vector<TaskId> Coordinator::Tick(absl::Time now) {
  const absl::Duration pause = now - last_tick_;
  if (pause >= options_.lease / 2) membership_.Extend(pause);
  last_tick_ = now;
  std::vector<TaskId> lost;
  for (const Membership::Lost& task : membership_.Expire(now)) {
    Depart(task.id, task.incarnation, now);
    lost.push_back(task.id);
  }
  CheckProgress(now);
  Advance(now);
  CheckAbsences(now);
  return lost;
}

void Coordinator::Depart(const TaskId& id, uint64_t incarnation,
                         absl::Time now) {
  if (id.role == "ps") board_.Lost(id.index);
  if (id.role != "worker") return;
  plan_->Release(incarnation);
  watch_.Forget(incarnation);
  set_aside_.erase(incarnation);
  reports_.Forget(id.index);
  const bool is_needed =
      options_.job.parameter_server().synchronous().lost_worker() ==
      job::Synchronous::FAIL;
  if (is_needed && phase_ == wire::TRAINING && !stop_requested_ &&
      !plan_->IsComplete()) {
    Fail(absl::StrCat(id.ToString(),
                      " is gone, and synchronous.lost_worker is FAIL"),
         now);
  }
}

void Coordinator::Advance(absl::Time now) {
  if (phase_ == wire::WAITING_FOR_PS && board_.AllPresent()) {
    Enter(wire::LOADING, now);
  }
  if (phase_ == wire::LOADING) {
    if (!board_.AllPresent()) {
      Enter(wire::WAITING_FOR_PS, now);
    } else if (board_.AllReady() && schedule_.newest_step()) {
      Enter(wire::TRAINING, now);
    }
  }
  if (phase_ == wire::TRAINING && plan_->IsComplete()) {
    Enter(wire::FINISHING, now);
    // A disk that was full while training has its tries at the end anew.
    schedule_.StartOver();
  }
  if (MayGrant() != may_grant_) {
    may_grant_ = !may_grant_;
    ++claim_news_;
  }
}

void Coordinator::Enter(wire::JobPhase phase, absl::Time now) {
  phase_ = phase;
  phase_since_ = now;
  ++claim_news_;
}

void Coordinator::Fail(std::string failure, absl::Time now) {
  if (HasEnded()) return;
  failure_ = std::move(failure);
  Enter(wire::FAILED, now);
}

bool Coordinator::HasEnded() const {
  return phase_ == wire::COMPLETE || phase_ == wire::FAILED;
}

void Coordinator::CheckAbsences(absl::Time now) {
  if (HasEnded() || gave_up_) return;
  std::vector<TaskId> overdue;
  for (const TaskId& ps : membership_.Absent("ps")) {
    const Membership::Member& member = membership_.members().at(ps);
    if (now - member.absent_since >= options_.ps_timeout) {
      overdue.push_back(ps);
    }
  }
  if (!overdue.empty()) {
    gave_up_ = absl::UnavailableError(
        absl::StrCat("waited ", absl::FormatDuration(options_.ps_timeout),
                     " for ", NamesOf(overdue)));
    return;
  }
  if (phase_ != wire::TRAINING || membership_.CountAlive("worker") > 0) return;
  const std::vector<TaskId> workers = membership_.Absent("worker");
  absl::Time since = phase_since_;
  for (const TaskId& worker : workers) {
    since = std::max(since, membership_.members().at(worker).absent_since);
  }
  if (now - since >= options_.worker_timeout) {
    gave_up_ = absl::UnavailableError(
        absl::StrCat("waited ", absl::FormatDuration(options_.worker_timeout),
                     " for any of ", NamesOf(workers)));
  }
}

std::vector<std::string> Coordinator::MissingTasks() const {
  if (HasEnded()) return {};
  std::vector<TaskId> missing = membership_.Absent("ps");
  if (phase_ == wire::TRAINING && membership_.CountAlive("worker") == 0) {
    for (TaskId& worker : membership_.Absent("worker")) {
      missing.push_back(std::move(worker));
    }
  }
  std::vector<std::string> names;
  for (const TaskId& task : missing) names.push_back(task.ToString());
  return names;
}

bool Coordinator::MayHaveOrder(absl::Time now) const {
  return phase_ != wire::TRAINING || stop_requested_ ||
         schedule_.IsDue(plan_->global_step(), now);
}

std::optional<Coordinator::Order> Coordinator::NextOrder(absl::Time now) {
  if (HasEnded() || gave_up_ || stopped_) return std::nullopt;
  if (stop_requested_) return NextStopOrder();
  if (phase_ == wire::WAITING_FOR_PS) return std::nullopt;
  const std::vector<size_t> empty = board_.Empty();
  if (!empty.empty() && now >= next_load_) {
    LoadOrder order;
    order.from_checkpoint = schedule_.newest_step().has_value();
    for (size_t shard : empty) {
      order.targets.push_back({shard, board_.incarnation(shard)});
    }
    return order;
  }
  if (!board_.AllReady()) return std::nullopt;
  // In LOADING the first checkpoint of a new run, else Advance() had left it.
  const bool due = phase_ == wire::TRAINING
                       ? schedule_.IsDue(plan_->global_step(), now)
                       : schedule_.MayTry(now);
  if (!due) return std::nullopt;
  return OrderCheckpoint();
}

std::optional<Coordinator::Order> Coordinator::NextStopOrder() {
  const bool has_news =
      phase_ == wire::FINISHING ||
      (phase_ == wire::TRAINING &&
       plan_->global_step() > schedule_.newest_step().value_or(-1));
  if (stop_ordered_ || !has_news || !board_.AllReady()) {
    stopped_ = true;
    return std::nullopt;
  }
  stop_ordered_ = true;
  return OrderCheckpoint();
}

bool Coordinator::IsCutInVain() const {
  return stop_requested_ && snapshot_needs_workers_ &&
         membership_.CountAlive("worker") == 0;
}

Coordinator::CheckpointOrder Coordinator::OrderCheckpoint() {
  CheckpointOrder order;
  durable::CheckpointManifest& manifest = order.manifest;
  manifest.set_global_step(plan_->global_step());
  snapshot_needs_workers_ = false;
  if (phase_ == wire::TRAINING) {
    const int workers = membership_.CountAlive("worker");
    const std::optional<int64_t> snapshot = plan_->SnapshotStep(workers);
    if (snapshot) manifest.set_global_step(*snapshot);
    snapshot_needs_workers_ = snapshot.has_value() && workers > 0;
  }
  order.at_global_step = options_.job.parameter_server().has_synchronous();
  manifest.set_run_id(options_.run_id);
  *manifest.mutable_job() = options_.job;
  options_.contents.AddTo(manifest);
  const std::vector<durable::WorkerProgress> progress = plan_->Progress();
  manifest.mutable_worker_progress()->Assign(progress.begin(), progress.end());
  const std::vector<durable::BatchSpan> unfinished = plan_->Unfinished();
  manifest.mutable_unfinished_batch()->Assign(unfinished.begin(),
                                              unfinished.end());
  manifest.set_final(phase_ == wire::FINISHING);
  return order;
}

void Coordinator::LoadDone(const LoadOrder::Target& target,
                           const absl::Status& status, absl::Time now) {
  if (status.ok()) {
    board_.Loaded(target.shard, target.incarnation);
    load_failures_ = 0;
    Advance(now);
    return;
  }
  // Another process has come to its place, whose turn is next.
  if (board_.incarnation(target.shard) != target.incarnation) return;
  const std::string what = absl::StrCat(
      "ps/", board_.shard(target.shard).ps_index, ": ", status.message());
  next_load_ = now + kLoadRetry;
  if (IsPermanent(status)) {
    Fail(what, now);
  } else if (++load_failures_ >= kMaxLoadFailures) {
    gave_up_ = absl::UnavailableError(
        absl::StrCat("loading failed ", load_failures_, " times: ", what));
  }
}

void Coordinator::CheckpointDone(const CheckpointOrder& order,
                                 const absl::Status& status, absl::Time now) {
  const bool was_in_vain = IsCutInVain();
  snapshot_needs_workers_ = false;
  if (status.ok()) {
    schedule_.Written(order.manifest.global_step(), now);
    if (order.manifest.final() && phase_ == wire::FINISHING) {
      Enter(wire::COMPLETE, now);
    }
    Advance(now);
    return;
  }
  if (order.at_global_step && phase_ == wire::TRAINING &&
      absl::IsAborted(status)) {
    plan_->SnapshotMissed();
    stop_ordered_ = false;
    return;
  }
  if (was_in_vain) {
    stop_ordered_ = false;
    return;
  }
  schedule_.Failed(now);
  // While training the next one may succeed; the first and the last must.
  if (phase_ != wire::TRAINING &&
      schedule_.failures() >= CheckpointSchedule::kMaxFailures) {
    Fail(absl::StrCat("no checkpoint of step ", order.manifest.global_step(),
                      " could be written: ", status.message()),
         now);
  }
}

void Coordinator::RequestStop(absl::Time now) {
  stop_requested_ = true;
  Advance(now);
}

std::optional<absl::Status> Coordinator::Outcome(absl::Time now) const {
  if (gave_up_) return gave_up_;
  if (HasEnded()) {
    const absl::Duration waited = now - phase_since_;
    const absl::Duration linger =
        options_.already_complete ? kCompleteLinger : absl::ZeroDuration();
    const absl::Duration limit =
        stop_requested_ ? std::min(kStopGrace, options_.finish_timeout)
                        : options_.finish_timeout;
    // Also for those whose lease ran out: one that stood still is told when it
    // goes on.
    const bool all_left = membership_.CountStaying() == 0 && waited >= linger;
    if (!all_left && waited < limit) return std::nullopt;
    if (phase_ == wire::COMPLETE) return absl::OkStatus();
    return absl::FailedPreconditionError(failure_);
  }
  if (!stopped_) return std::nullopt;
  return absl::CancelledError(absl::StrCat(
      "stopped at step ", plan_->global_step(), ", newest checkpoint ",
      schedule_.newest_step() ? absl::StrCat(*schedule_.newest_step())
                              : "none"));
}

}  // namespace parasol
