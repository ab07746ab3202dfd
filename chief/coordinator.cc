#include "chief/coordinator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "chief/absences.h"
#include "chief/checkpoint_failure.h"
#include "chief/new_step_plan.h"

namespace parasol {
namespace {

constexpr absl::Duration kLoadRetry = absl::Seconds(1);
// What finish_timeout shrinks to when the chief itself is told to go.
constexpr absl::Duration kStopGrace = absl::Seconds(5);

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
      plan_(NewStepPlan(options_.job, options_.resumed, now)),
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

absl::Status Coordinator::Register(const wire::RegisterRequest& request,
                                   absl::Time now) {
  if (request.completed_steps() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("completed_steps is ", request.completed_steps()));
  }
  const wire::Task& task = request.task();
  ASSIGN_OR_RETURN(const Membership::Registration registration,
                   membership_.Register(task, request.metrics_address(), now));
  if (registration.replaced) {
    Depart(TaskId::Of(task), *registration.replaced, now);
  }
  if (task.role() == "ps") {
    const bool holds_run =
        options_.same_sharding && request.run_id() == options_.run_id;
    board_.Arrived(task.index(), task.incarnation(), holds_run);
  } else if (task.role() == "worker") {
    plan_->Enter(task.incarnation(), request.completed_steps());
    plan_->SetShardOf(task.incarnation(), RankOf(task, options_.tasks));
  }
  Advance(now);
  return absl::OkStatus();
}

absl::StatusOr<wire::HeartbeatResponse> Coordinator::Heartbeat(
    const wire::HeartbeatRequest& request, absl::Time now) {
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  if (request.task().role() == "worker") reports_.Keep(request);
  Advance(now);
  wire::HeartbeatResponse response;
  response.set_phase(phase_);
  response.set_placement_version(board_.version());
  response.set_failure(failure_);
  response.set_trouble(trouble_);
  for (std::string& task : MissingTasks()) {
    response.add_missing_task(std::move(task));
  }
  if (request.leaving() && request.task().role() == "ps") {
    const uint64_t incarnation = request.task().incarnation();
    leaving_.Ask(incarnation);
    response.set_may_leave(leaving_.MayLeave(incarnation) || HasEnded() ||
                           gave_up_ || stopped_);
  }
  return response;
}

absl::StatusOr<wire::GetPlacementResponse> Coordinator::GetPlacement() const {
  return board_.Placement(options_.run_id);
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
  claimed_at_[incarnation] = request.completed_steps();
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
  status.set_trouble(trouble_);
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
  if (!HasEnded() && !gave_up_) {
    const absl::Status absences = CheckAbsences(
        membership_, phase_, phase_since_,
        {.ps = options_.ps_timeout, .workers = options_.worker_timeout}, now);
    if (!absences.ok()) gave_up_ = absences;
  }
  return lost;
}

void Coordinator::Depart(const TaskId& id, uint64_t incarnation,
                         absl::Time now) {
  if (id.role == "ps") {
    board_.Lost(id.index);
    leaving_.Forget(incarnation);
  }
  if (id.role != "worker") return;
  plan_->Release(incarnation);
  claimed_at_.erase(incarnation);
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
    // A disk that was full while training has its time at the end anew.
    schedule_.StartOver();
    trouble_.clear();
  }
}

void Coordinator::Enter(wire::JobPhase phase, absl::Time now) {
  phase_ = phase;
  phase_since_ = now;
}

void Coordinator::Fail(std::string failure, absl::Time now,
                       absl::StatusCode code) {
  if (HasEnded()) return;
  failure_ = std::move(failure);
  failure_code_ = code;
  Enter(wire::FAILED, now);
}

bool Coordinator::HasEnded() const {
  return phase_ == wire::COMPLETE || phase_ == wire::FAILED;
}

std::vector<std::string> Coordinator::MissingTasks() const {
  std::vector<std::string> names;
  if (HasEnded()) return names;
  for (const TaskId& task : parasol::MissingTasks(membership_, phase_)) {
    names.push_back(task.ToString());
  }
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
  const std::vector<size_t> empty = board_.Empty();
  if (!empty.empty() && now >= next_load_) {
    LoadOrder order;
    order.from_checkpoint = schedule_.newest_step().has_value();
    for (size_t shard : empty) {
      order.targets.push_back({shard, board_.incarnation(shard)});
    }
    return order;
  }
  if (!board_.AllReady() || !IsCheckpointDue(now)) return std::nullopt;
  return OrderCheckpoint();
}

bool Coordinator::IsCheckpointDue(absl::Time now) const {
  if (!schedule_.MayTry(now)) return false;
  if (phase_ == wire::TRAINING) {
    return schedule_.IsDue(plan_->global_step(), now) ||
           leaving_.NeedCheckpoint();
  }
  // In LOADING the first checkpoint of a new run, else Advance() had left it.
  return !AwaitsLastReports(now);
}

// The step is done when one worker has seen it at every shard's variables.
// Others' gradients of sparse tables may still be on their way.
bool Coordinator::AwaitsLastReports(absl::Time now) const {
  if (phase_ != wire::FINISHING ||
      !options_.job.parameter_server().has_synchronous() ||
      now - phase_since_ >= kLastReportLimit) {
    return false;
  }
  return std::any_of(claimed_at_.begin(), claimed_at_.end(),
                     [this](const auto& entry) {
                       return entry.second < plan_->end_step().value_or(0);
                     });
}

std::optional<Coordinator::Order> Coordinator::NextStopOrder() {
  const bool has_news =
      phase_ == wire::FINISHING ||
      (phase_ == wire::TRAINING &&
       (plan_->global_step() > schedule_.newest_step().value_or(-1) ||
        leaving_.NeedCheckpoint()));
  if (stop_ordered_ || !has_news || !board_.AllReady()) {
    stopped_ = true;
    return std::nullopt;
  }
  stop_ordered_ = true;
  return OrderCheckpoint();
}

bool Coordinator::IsCheckpointObsolete(absl::Time now) const {
  return phase_ == wire::FINISHING && snapshot_needs_workers_ &&
         now - phase_since_ >= kLastReportLimit;
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
  // At the end nothing is on its way any more, and a shard that was lost and
  // restored since will have no more updates.
  order.at_global_step = options_.job.parameter_server().has_synchronous() &&
                         phase_ != wire::FINISHING;
  leaving_.Ordered();
  manifest.set_run_id(options_.run_id);
  *manifest.mutable_job() = options_.job;
  options_.contents.AddTo(manifest);
  const std::vector<durable::WorkerProgress> progress = plan_->Progress();
  manifest.mutable_worker_progress()->Assign(progress.begin(), progress.end());
  manifest.set_final(phase_ == wire::FINISHING);
  return order;
}

void Coordinator::LoadDone(const LoadOrder::Target& target,
                           const absl::Status& status, absl::Time now) {
  if (status.ok()) {
    board_.Loaded(target.shard, target.incarnation);
    load_failures_ = 0;
    trouble_.clear();
    // The last attempt may have failed for want of this shard.
    schedule_.TryNow();
    Advance(now);
    return;
  }
  // Another process has come to its place, whose turn is next.
  if (board_.incarnation(target.shard) != target.incarnation) return;
  const std::string what = absl::StrCat(
      "ps/", board_.shard(target.shard).ps_index, ": ", status.message());
  next_load_ = now + kLoadRetry;
  trouble_ = what;
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
  leaving_.Done(status.ok());
  if (status.ok()) {
    trouble_.clear();
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
  // The final one follows at once.
  if (phase_ == wire::FINISHING && !order.manifest.final()) return;
  CheckpointFailed(order.manifest.global_step(), status, now);
}

void Coordinator::CheckpointFailed(int64_t step, const absl::Status& status,
                                   absl::Time now) {
  schedule_.Failed(now);
  trouble_ = DescribeFailure(step, schedule_.failures(), status);
  // While training the next one may succeed; the first and the last must.
  if (phase_ == wire::TRAINING ||
      now - schedule_.failing_since() < options_.checkpoint_timeout) {
    return;
  }
  const absl::Status end =
      EndWithoutCheckpoint(step, options_.checkpoint_timeout, status);
  if (absl::IsUnavailable(end)) {
    gave_up_ = end;
  } else {
    Fail(std::string(end.message()), now, end.code());
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
    return absl::Status(failure_code_, failure_);
  }
  if (!stopped_) return std::nullopt;
  return absl::CancelledError(absl::StrCat(
      "stopped at step ", plan_->global_step(), ", newest checkpoint ",
      schedule_.newest_step() ? absl::StrCat(*schedule_.newest_step())
                              : "none"));
}

}  // namespace parasol
