#include "chief/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// What finish_timeout shrinks to when the chief itself is told to go.
constexpr absl::Duration kStopGrace = absl::Seconds(5);
// Names in one message or log line.
constexpr size_t kMaxNamed = 16;

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

}  // namespace

Coordinator::Coordinator(Options options, absl::Time now)
    : options_(std::move(options)),
      membership_(MembershipOf(options_), now),
      board_(options_.shards, absl::ToUnixMicros(now)),
      plan_(PlanOf(options_, now)),
      end_(options_.job),
      schedule_(options_.job.checkpoint(),
                options_.resumed
                    ? std::optional<int64_t>(options_.resumed->global_step())
                    : std::nullopt,
                now),
      start_(now),
      last_tick_(now),
      phase_since_(now) {
  if (end_.step()) plan_->SetEnd(*end_.step());
  if (options_.already_complete) Enter(wire::COMPLETE, now);
}

absl::StatusOr<wire::RegisterResponse> Coordinator::Register(
    const wire::RegisterRequest& request, absl::Time now) {
  if (request.completed_steps() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("completed_steps is ", request.completed_steps()));
  }
  const wire::Task& task = request.task();
  wire::RegisterResponse response;
  *response.mutable_job() = options_.job;
  response.set_run_id(options_.run_id);
  response.set_layout(options_.layout);
  response.set_chief_epoch(options_.chief_epoch);
  // A worker that has worked with others than these variables learns from the
  // answer that it has to start again; its steps are not credited.
  const bool is_ours = IsOurs(request.run_id(), request.layout());
  if (task.role() == "worker" && request.layout() != 0 && !is_ours) {
    return response;
  }
  ASSIGN_OR_RETURN(const Membership::Registration registration,
                   membership_.Register(task, request.place_epoch(),
                                        request.metrics_address(), now));
  response.set_place_epoch(registration.epoch);
  if (registration.replaced) {
    Depart(TaskId::Of(task), *registration.replaced, now);
  }
  if (task.role() == "ps") {
    // Nothing is loaded to a process that may be dead already.
    if (membership_.IsSettled(TaskId::Of(task))) {
      board_.Arrived(task.index(), task.incarnation(), is_ours);
    }
  } else if (task.role() == "worker") {
    plan_->Enter(task.incarnation(), request.completed_steps());
    plan_->SetShardOf(task.incarnation(), RankOf(task, options_.tasks));
  }
  Advance(now);
  return response;
}

bool Coordinator::IsOurs(const std::string& run_id, uint64_t layout) const {
  return run_id == options_.run_id && layout == options_.layout;
}

absl::StatusOr<wire::HeartbeatResponse> Coordinator::Heartbeat(
    const wire::HeartbeatRequest& request, absl::Time now) {
  const wire::Task& task = request.task();
  RETURN_IF_ERROR(membership_.Renew(task, now));
  if (task.role() == "worker") reports_.Keep(request);
  if (task.role() == "ps") {
    const bool is_ours = IsOurs(request.run_id(), request.layout());
    board_.Arrived(task.index(), task.incarnation(), is_ours);
    board_.Heard(task.index(), task.incarnation(), is_ours);
  }
  Advance(now);
  wire::HeartbeatResponse response;
  response.set_phase(phase_);
  response.set_run_id(options_.run_id);
  response.set_layout(options_.layout);
  response.set_chief_epoch(options_.chief_epoch);
  response.set_placement_version(board_.version());
  response.set_failure(failure_);
  for (std::string& task : MissingTasks()) {
    response.add_missing_task(std::move(task));
  }
  return response;
}

absl::StatusOr<wire::GetPlacementResponse> Coordinator::GetPlacement() const {
  ASSIGN_OR_RETURN(wire::GetPlacementResponse placement,
                   board_.Placement(options_.run_id));
  placement.set_layout(options_.layout);
  return placement;
}

absl::StatusOr<wire::ClaimStepsResponse> Coordinator::ClaimSteps(
    const wire::ClaimStepsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  RETURN_IF_ERROR(end_.ObserveExamples(
      request.train_examples(),
      {request.shard_examples().begin(), request.shard_examples().end()}));
  plan_->SetShards(end_.ShardBatches());
  if (end_.step()) plan_->SetEnd(*end_.step());
  const uint64_t incarnation = request.task().incarnation();
  plan_->Report(incarnation, request.completed_steps());
  Advance(now);
  wire::ClaimStepsResponse response;
  response.set_phase(phase_);
  plan_->Answer(incarnation, MayGrant() ? request.want() : 0,
                membership_.CountAlive("worker"), response);
  response.set_global_step(plan_->global_step());
  for (std::string& task : AwaitedTasks()) {
    response.add_awaited_task(std::move(task));
  }
  return response;
}

bool Coordinator::IsNews(const wire::ClaimStepsRequest& request,
                         const wire::ClaimStepsResponse& response) {
  return response.phase() >= wire::FINISHING ||
         response.granted_steps() > request.granted_steps() ||
         response.assignment_version() != request.assignment_version();
}

bool Coordinator::MayGrant() const {
  return phase_ == wire::TRAINING && !stop_requested_ && !AwaitsReturns();
}

// A chief that has restarted knows how far a worker is when that has registered
// again, and bounded staleness goes by the slowest one. Whoever is not back
// within a lease would have lost it.
bool Coordinator::AwaitsReturns() const {
  return phase_ == wire::TRAINING && options_.resumed &&
         options_.job.parameter_server().has_bounded_staleness() &&
         last_tick_ - start_ < options_.lease &&
         !membership_.Absent("worker").empty();
}

absl::Status Coordinator::ReportFailure(
    const wire::ReportFailureRequest& request, absl::Time now) {
  absl::Status status = membership_.Renew(request.task(), now);
  // A lease that has just run out does not mend what the task has met.
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  Fail(absl::StrCat(TaskId::Of(request.task()).ToString(), ": ",
                    request.message()),
       now);
  return absl::OkStatus();
}

absl::Status Coordinator::Leave(const wire::LeaveRequest& request,
                                absl::Time now) {
  RETURN_IF_ERROR(membership_.Leave(request.task(), now));
  const uint64_t incarnation = request.task().incarnation();
  if (request.task().role() == "worker") {
    plan_->Report(incarnation, request.completed_steps());
  }
  Depart(TaskId::Of(request.task()), incarnation, now);
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
    task->mutable_task()->set_incarnation(member.incarnation);
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
  Advance(now);
  CheckAbsences(now);
  return lost;
}

void Coordinator::Depart(const TaskId& id, uint64_t incarnation,
                         absl::Time now) {
  if (id.role == "ps") board_.Lost(id.index);
  if (id.role != "worker") return;
  plan_->Release(incarnation);
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
}

void Coordinator::Enter(wire::JobPhase phase, absl::Time now) {
  phase_ = phase;
  phase_since_ = now;
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

std::vector<std::string> Coordinator::AwaitedTasks() const {
  std::vector<std::string> names;
  if (HasEnded()) return names;
  if (AwaitsReturns()) {
    for (const TaskId& id : membership_.Absent("worker")) {
      names.push_back(id.ToString());
    }
    return names;
  }
  const std::vector<uint64_t> awaited = plan_->Awaited();
  for (const auto& [id, member] : membership_.members()) {
    if (id.role == "worker" &&
        std::count(awaited.begin(), awaited.end(), member.incarnation) > 0) {
      names.push_back(id.ToString());
    }
  }
  return names;
}

std::optional<Coordinator::Order> Coordinator::NextOrder(absl::Time now) {
  if (HasEnded() || gave_up_ || stopped_) return std::nullopt;
  if (stop_requested_) return NextStopOrder();
  if (phase_ == wire::WAITING_FOR_PS) return std::nullopt;
  std::vector<LoadOrder::Target> targets = loads_.Due(board_, now);
  if (!targets.empty()) {
    return LoadOrder{.targets = std::move(targets),
                     .from_checkpoint = schedule_.newest_step().has_value(),
                     .ps_epochs = PsEpochs()};
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
  manifest.set_final(phase_ == wire::FINISHING);
  for (size_t shard = 0; shard < board_.size(); ++shard) {
    order.incarnations.push_back(board_.incarnation(shard));
  }
  return order;
}

std::map<int, int64_t> Coordinator::PsEpochs() const {
  std::map<int, int64_t> epochs;
  for (const auto& [id, member] : membership_.members()) {
    const int64_t epoch =
        member.predecessor == 0 ? member.epoch : member.predecessor_epoch;
    if (id.role == "ps" && epoch > 0) epochs[id.index] = epoch;
  }
  return epochs;
}

void Coordinator::LoadDone(const LoadOrder::Target& target,
                           const absl::Status& status, absl::Time now) {
  const ShardLoads::Verdict verdict = loads_.Done(target, status, board_, now);
  const std::string what = absl::StrCat(
      "ps/", board_.shard(target.shard).ps_index, ": ", status.message());
  switch (verdict) {
    case ShardLoads::Verdict::kLoaded:
      return Advance(now);
    case ShardLoads::Verdict::kAgain:
      return;
    case ShardLoads::Verdict::kFailed:
      return Fail(what, now);
    case ShardLoads::Verdict::kGaveUp:
      gave_up_ = absl::UnavailableError(
          absl::StrCat("loading failed ", loads_.failures(), " times: ", what));
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
