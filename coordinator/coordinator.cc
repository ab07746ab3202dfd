#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/trust/process_secret.h"
#include "coordinator/absences.h"
#include "coordinator/task_message.h"

namespace parasol {
namespace {

// Time within which the workers of a chief that was lost are back: they look
// for the next one each second.
constexpr absl::Duration kReturnTime = absl::Seconds(2);

// Refuses a process that names itself as one at another place: its steps would
// count for both.
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

}  // namespace

Coordinator::Coordinator(Options options, absl::Time now)
    : options_(std::move(options)),
      membership_(MembershipOf(options_), now),
      board_(options_.shards, absl::ToUnixMicros(now)),
      standbys_(ReplicatedPs(options_), options_.standbys),
      acting_(options_.acting_hosts),
      grants_(options_.job, PlanOf(options_, now), GrantsOf(options_)),
      evaluations_(options_.job, EvaluationsOf(options_), now),
      followed_(FollowedOf(options_)),
      orders_(options_, evaluations_.decisions().learning_rate(), now),
      account_(options_),
      worker_places_(GrantsOf(options_).places),
      start_(now),
      last_tick_(now),
      phases_({.already_complete = options_.already_complete,
               .finish_timeout = options_.finish_timeout},
              now) {
  // Workers of the chief before are believed as far as there were batches.
  grants_.Observe(LookAtGrants());
}

absl::StatusOr<wire::RegisterResponse> Coordinator::Register(
    const wire::RegisterRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  const wire::Task& task = request.task();
  RETURN_IF_ERROR(CheckNewestChief(task));
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
  RETURN_IF_ERROR(CheckIncarnation(task, membership_.members()));
  if (task.role() == "worker") {
    RETURN_IF_ERROR(grants_.plan().Check(task.incarnation(),
                                         request.completed_steps(),
                                         request.completed_steps()))
        << TaskId::Of(task).ToString();
  }
  RETURN_IF_ERROR(CheckEntry(request, now));
  const bool is_known = membership_.IsAt(TaskId::Of(task), task.incarnation());
  absl::StatusOr<Membership::Registration> entry =
      membership_.Register(task, Membership::Arrival::Of(request), now);
  if (!entry.ok()) return ForActedFor(task, entry.status());
  const Membership::Registration& registration = *entry;
  response.set_place_epoch(registration.epoch);
  if (registration.replaced) {
    if (registration.replaced_was_alive) {
      Depart(TaskId::Of(task), *registration.replaced, now);
    }
    if (task.role() == "worker") grants_.Retire(*registration.replaced);
  }
  account_.Begin(request);
  if (task.role() == "ps") {
    Enter(request, /*is_new=*/!is_known, now);
  } else if (task.role() == "worker") {
    grants_.Enter(task, WorkerArrivalOf(request, options_.tasks));
    left_workers_.erase(task.index());
  }
  Advance(now);
  return response;
}

absl::Status Coordinator::CheckNewestChief(const wire::Task& task) const {
  if (task.chief_epoch() <= options_.chief_epoch) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      TaskId::Of(task).ToString(), " has heard of chief ", task.chief_epoch(),
      ": this one, chief ", options_.chief_epoch, ", has been replaced"));
}

bool Coordinator::IsOurs(const std::string& run_id, uint64_t layout) const {
  return run_id == options_.run_id && layout == options_.layout;
}

absl::StatusOr<wire::HeartbeatResponse> Coordinator::Heartbeat(
    const wire::HeartbeatRequest& request, absl::Time now) {
  const wire::Task& task = request.task();
  RETURN_IF_ERROR(CheckTask(task));
  RETURN_IF_ERROR(CheckNewestChief(task));
  RETURN_IF_ERROR(ForActedFor(task, membership_.Renew(task, now)));
  account_.Keep(request, now);
  wire::HeartbeatResponse response;
  if (task.role() == "ps") {
    const bool is_ours = IsOurs(request.run_id(), request.layout());
    if (!task.has_host_index()) board_.ServesAt(task.index(), std::nullopt, "");
    board_.Arrived(task.index(), task.incarnation(), is_ours);
    board_.Heard(task.index(), task.incarnation(), is_ours);
    if (request.has_updates()) grants_.HearUpdates(task, request.updates());
  }
  Advance(now);
  response.set_phase(phases_.phase());
  response.set_run_id(options_.run_id);
  response.set_layout(options_.layout);
  response.set_chief_epoch(options_.chief_epoch);
  response.set_placement_version(board_.version());
  response.set_failure(phases_.failure());
  response.set_trouble(TroubleOf(View()).text);
  response.set_global_step(grants_.plan().global_step());
  for (std::string& task : MissingTaskNames(View())) {
    response.add_missing_task(std::move(task));
  }
  for (const size_t shard : board_.Empty()) {
    if (shard >= NumPsShards(options_)) continue;
    response.add_loading_shard(static_cast<int>(shard));
  }
  if (task.role() == "ps") HearPs(request, now, response);
  return response;
}

absl::StatusOr<wire::GetPlacementResponse> Coordinator::GetPlacement(
    const wire::GetPlacementRequest& request) const {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  const AdmittedWorker worker = {.index = request.task().index(),
                                 .incarnation = request.task().incarnation()};
  if (!membership_.IsAt(TaskId::Of(request.task()), worker.incarnation)) {
    return absl::UnavailableError(
        absl::StrCat("no placement: ", TaskId::Of(request.task()).ToString(),
                     " is not registered"));
  }
  ASSIGN_OR_RETURN(wire::GetPlacementResponse placement,
                   board_.Placement(options_.run_id, NumPsShards(options_)));
  placement.set_layout(options_.layout);
  for (int i = 0; i < placement.shard_size(); ++i) {
    placement.mutable_shard(i)->set_admission(
        AdmissionOf(worker, board_.incarnation(i)));
  }
  return placement;
}

absl::Status Coordinator::ReportFailure(
    const wire::ReportFailureRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  const absl::Status status = membership_.Renew(request.task(), now);
  if (!status.ok()) {
    // A lease that has just run out does not mend what the task has met.
    const auto it = membership_.members().find(TaskId::Of(request.task()));
    const bool is_lost = it != membership_.members().end() && it->second.lost &&
                         it->second.incarnation == request.task().incarnation();
    if (!absl::IsNotFound(status) || !is_lost) return status;
  }
  // Only of a task that has not begun, as its flags or data are wrong.
  const bool is_configuration =
      ExitCodeFor(absl::Status(static_cast<absl::StatusCode>(request.code()),
                               "a task's")) == ExitCode::kBadConfiguration;
  phases_.Fail(
      absl::Status(is_configuration ? absl::StatusCode::kInvalidArgument
                                    : absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(TaskId::Of(request.task()).ToString(), ": ",
                                FailureLine(request.message()))),
      now);
  return absl::OkStatus();
}

absl::Status Coordinator::Leave(const wire::LeaveRequest& request,
                                absl::Time now) {
  RETURN_IF_ERROR(CheckTask(request.task()));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  const uint64_t incarnation = request.task().incarnation();
  const bool is_worker = request.task().role() == "worker";
  if (is_worker) {
    RETURN_IF_ERROR(grants_.plan().Check(incarnation, request.completed_steps(),
                                         request.completed_steps()))
        << TaskId::Of(request.task()).ToString();
  }
  ASSIGN_OR_RETURN(const bool was_alive,
                   membership_.Leave(request.task(), now));
  // The steps of one whose lease ran out were taken back then.
  if (was_alive) {
    if (is_worker) {
      grants_.Report(request.task(), request.completed_steps(),
                     phases_.phase());
    }
    Depart(TaskId::Of(request.task()), incarnation, now);
  }
  if (request.task().has_host_index()) acting_.Left(request.task().index());
  if (is_worker) {
    grants_.Retire(incarnation);
    left_workers_.insert(request.task().index());
  }
  Advance(now);
  return absl::OkStatus();
}

Coordinator::Ticked Coordinator::Tick(absl::Time now) {
  const absl::Duration pause = now - last_tick_;
  if (pause >= options_.lease / 2) membership_.Extend(pause);
  last_tick_ = now;
  Ticked ticked;
  for (const Membership::Lost& task : membership_.Expire(now)) {
    Depart(task.id, task.incarnation, now);
    ticked.lost.push_back(task.id);
  }
  EndHandOvers(now);
  grants_.TakeBack(phases_.phase() == wire::TRAINING && board_.AllReady(), now);
  if (followed_) followed_->Observe(grants_.plan(), MayTrain(), now);
  Advance(now);
  account_.Look(View(), now);
  if (!phases_.HasEnded() && !phases_.HasGivenUp()) {
    const absl::Status absences = CheckAbsences(
        membership_, phases_.phase(), NeedsAllWorkers(), phases_.since(),
        {.ps = options_.ps_timeout, .workers = options_.worker_timeout},
        [this](const TaskId& id) { return NameOf(options_, id); }, now);
    if (!absences.ok()) phases_.GiveUp(absences);
  }
  ticked.warnings = evaluations_.TakeWarnings();
  ticked.awaits_standby = orders_.AwaitsStandby(ForOrders(), now);
  if (order_) {
    ticked.in_vain = orders_.InVain(*order_, ForOrders(), board_, now);
    AddLostStandbys(*order_, ticked.in_vain);
  }
  return ticked;
}

void Coordinator::Depart(const TaskId& id, uint64_t incarnation,
                         absl::Time now) {
  if (id.role == "ps") {
    board_.Lost(id.index);
    grants_.ForgetUpdates(id.index);
    orders_.Forget(incarnation);
    handing_over_.erase(incarnation);
  }
  if (id.role != "worker") return;
  grants_.Release(incarnation);
  account_.Forget(id.index);
  const bool is_needed =
      options_.job.parameter_server().synchronous().lost_worker() ==
      job::Synchronous::FAIL;
  if (is_needed && phases_.phase() == wire::TRAINING &&
      !orders_.stop_requested() && !grants_.plan().IsComplete()) {
    phases_.Fail(
        absl::FailedPreconditionError(absl::StrCat(
            id.ToString(), " is gone, and synchronous.lost_worker is FAIL")),
        now);
  }
}

void Coordinator::Advance(absl::Time now) {
  // Steps that workers did for another chief count before the training begins.
  if (phases_.training_since()) account_.Reach(grants_, now);
  if (phases_.phase() == wire::WAITING_FOR_PS && board_.AllPresent()) {
    phases_.Enter(wire::LOADING, now);
  }
  if (phases_.phase() == wire::LOADING) {
    if (!board_.AllPresent()) {
      phases_.Enter(wire::WAITING_FOR_PS, now);
    } else if (board_.AllReady() && orders_.schedule().newest_step() &&
               !AwaitsWorkers() && !orders_.leaving().IsAnyGoing(now)) {
      phases_.Enter(wire::TRAINING, now);
    }
  }
  grants_.EndEarly(LookAtGrants());
  if (phases_.phase() == wire::TRAINING && grants_.plan().IsComplete()) {
    phases_.Enter(wire::FINISHING, now);
    orders_.StartOver();
  }
  evaluations_.Observe(
      {.global_step = grants_.plan().global_step(),
       .is_training = MayTrain(),
       .is_over = phases_.phase() > wire::TRAINING,
       .is_failing = orders_.schedule().failures() > 0,
       .has_evaluator = membership_.CountAlive("evaluator") > 0,
       .now = now});
  grants_.Observe(LookAtGrants());
}

// A new run waits for all workers, as TensorFlow's do. Some workers of a run
// that goes on may be gone for good, so it waits for a lease only: workers that
// come later take their replicas from the next step on.
bool Coordinator::NeedsAllWorkers() const {
  return options_.is_mirrored && phases_.phase() < wire::TRAINING &&
         (!options_.resumed || IsNew());
}

bool Coordinator::AwaitsWorkers() const {
  return NeedsAllWorkers() && membership_.CountAlive("worker") < worker_places_;
}

void Coordinator::RequestStop(absl::Time now) {
  orders_.RequestStop(now);
  Advance(now);
}

bool Coordinator::HaveWorkersLeft() const {
  return options_.ends_with_workers &&
         std::ssize(left_workers_) >= worker_places_;
}

void Coordinator::RequestEnd(absl::Time now) {
  end_requested_ = true;
  Advance(now);
}

JobView Coordinator::View() const {
  return {.options = options_,
          .membership = membership_,
          .board = board_,
          .grants = grants_,
          .phases = phases_,
          .evaluations = evaluations_,
          .orders = orders_,
          .look = LookAtGrants(),
          .needs_all_workers = NeedsAllWorkers(),
          .last_tick = last_tick_};
}

wire::JobStatus Coordinator::Status(absl::Time now) const {
  wire::JobStatus status = account_.Status(View(), now);
  if (followed_) followed_->AddTo(status, status.global_step(), now);
  return status;
}

std::optional<absl::Status> Coordinator::Outcome(absl::Time now) const {
  // A task whose lease ran out counts, too: if it only stood still, it is told
  // when it goes on.
  const bool all_left = StayingTasks(options_, membership_).empty();
  if (auto end = phases_.Outcome(all_left, orders_.stop_requested(), now))
    return end;
  if (phases_.HasEnded()) return std::nullopt;
  if (!orders_.stopped()) return std::nullopt;
  return absl::CancelledError(absl::StrCat(
      "stopped at step ", grants_.plan().global_step(), ", newest checkpoint ",
      orders_.schedule().newest_step()
          ? absl::StrCat(*orders_.schedule().newest_step())
          : "none"));
}

StepGrants::Look Coordinator::LookAtGrants() const {
  const bool may_return = options_.resumed && IsNew() && !HaveWorkersLeft();
  const absl::Time begun = phases_.training_since().value_or(start_);
  return {.phase = phases_.phase(),
          .is_stopping = orders_.stop_requested(),
          .workers = membership_.CountAlive("worker"),
          .may_return = may_return,
          .return_now = may_return && last_tick_ - begun < kReturnTime,
          .ends_early = end_requested_ || HaveWorkersLeft() ||
                        evaluations_.decisions().stop().has_value(),
          .limit = evaluations_.lag().StepLimit(),
          .batches = followed_
                         ? std::optional<int64_t>(followed_->files().batches())
                         : std::nullopt};
}

Orders::Job Coordinator::ForOrders() const {
  return {.phases = phases_,
          .membership = membership_,
          .grants = grants_,
          .evaluations = evaluations_,
          .files = followed_ ? &followed_->files() : nullptr,
          .has_standbys = standbys_.is_used(),
          .may_be_acted_for = MayBeActedFor()};
}

std::optional<Order> Coordinator::NextOrder(absl::Time now) {
  order_ = orders_.Next(ForOrders(), board_, now);
  auto* const load = order_ ? std::get_if<LoadOrder>(&*order_) : nullptr;
  if (load != nullptr && standbys_.is_used()) {
    AddStandbys(*load);
    load->acting_hosts = acting_.hosts();
    if (load->targets.empty()) order_.reset();
  }
  return order_;
}

std::optional<absl::Status> Coordinator::Note(const LoadResult& result,
                                              absl::Time now) {
  if (!result.lost.empty()) {
    const TaskId id = {"ps", board_.shard(result.target.shard).ps_index};
    account_.Warn(absl::StrCat(NameOf(options_, id), ": ", result.lost));
  }
  return orders_.LoadDone(result.target, result.status, board_, now);
}

std::optional<absl::Status> Coordinator::Note(const CheckpointResult& result,
                                              absl::Time now) {
  const durable::CheckpointManifest& manifest = result.order.manifest;
  const std::optional<absl::Status> next = orders_.CheckpointDone(
      result.order, result.status, ForOrders(), board_, now);
  if (!result.status.ok()) return next;
  grants_.Saved(manifest);
  if (result.order.stay || manifest.final()) standbys_.Saved();
  if (result.order.IsEvaluatedAt(manifest.global_step())) {
    evaluations_.Written(manifest.global_step(), now);
  }
  if (manifest.final() && phases_.phase() == wire::FINISHING) {
    phases_.Enter(wire::COMPLETE, now);
  }
  return next;
}

void Coordinator::Done(const OrderResult& result, absl::Time now) {
  const std::optional<absl::Status> next = std::visit(
      [&](const auto& of_order) { return Note(of_order, now); }, result);
  if (!next) return;
  if (next->ok()) return Advance(now);
  if (absl::IsUnavailable(*next)) return phases_.GiveUp(*next);
  phases_.Fail(*next, now);
}

std::vector<std::string> Coordinator::Evaluated(
    absl::Span<const Evaluation> evaluations, absl::Time now) {
  std::vector<std::string> lines = evaluations_.Update(evaluations);
  Advance(now);
  return lines;
}

Coordinator::News Coordinator::NewsAt(absl::Time now) const {
  return {.claims = grants_.news() + phases_.begun(),
          .may_have_order = orders_.MayHaveNext(ForOrders(), now),
          .newest_checkpoint = orders_.schedule().newest_step()};
}

}  // namespace parasol
