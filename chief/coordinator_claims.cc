// The part of the coordinator that answers claims of steps, and says how far
// losses and evaluations are.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "chief/coordinator.h"
#include "chief/task_message.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// Number of names in one answer.
constexpr size_t kMaxNamedInAnswer = 16;
// Largest number of steps that a claim is granted.
constexpr int64_t kMaxWant = 1024;
// Time for which a job waits for an evaluation before the evaluator is named:
// under max_lag: 0 it waits for each one.
constexpr absl::Duration kEvaluatorNamed = absl::Seconds(5);
// Time for which a live worker whose steps were taken back is granted none.
constexpr absl::Duration kSetAside = absl::Seconds(1);

}  // namespace

absl::StatusOr<wire::ClaimStepsResponse> Coordinator::ClaimSteps(
    const wire::ClaimStepsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  const bool was_counted = end_.has_examples();
  RETURN_IF_ERROR(
      end_.ObserveExamples(request.train_examples(), request.shard_examples()))
      << TaskId::Of(request.task()).ToString();
  if (!was_counted) {
    plan_->SetShards(end_.ShardBatches());
    if (end_.step() && !ended_early_) plan_->SetEnd(*end_.step());
  }
  const uint64_t incarnation = request.task().incarnation();
  RETURN_IF_ERROR(plan_->Check(incarnation, request.completed_steps(),
                               request.started_steps()))
      << TaskId::Of(request.task()).ToString();
  if (MayCount()) {
    if (Counts(request.task())) {
      plan_->Report(incarnation, request.completed_steps());
    }
    plan_->Hears(incarnation, request.assignment_version());
    // The end stays where it is once it is reached.
    if (phases_.phase() <= wire::TRAINING) {
      plan_->ReportPushed(incarnation, request.pushed_steps());
    }
  }
  if (request.broken_assignment() != 0) {
    plan_->RenewAssignment(request.broken_assignment());
  }
  claimed_at_[incarnation] = request.completed_steps();
  const bool is_idle = request.started_steps() <= request.completed_steps();
  if (is_idle) {
    idle_.insert(incarnation);
  } else {
    idle_.erase(incarnation);
  }
  ResumeWorker(request, now);
  Advance(now);
  wire::ClaimStepsResponse response;
  response.set_phase(phases_.phase());
  const int64_t want = std::clamp(request.want(), int64_t{0}, kMaxWant);
  plan_->Answer(request, MayGrant() ? want : 0,
                membership_.CountAlive("worker"), response);
  response.set_global_step(plan_->global_step());
  if (response.assignment_version() != request.assignment_version()) {
    AddMembers(response);
  }
  watch_.Report(incarnation, request.completed_steps(),
                plan_->HoldsSteps(incarnation), now);
  if (is_idle && !request.has_wait() && !IsNews(request, response)) {
    NameAwaited(response);
  }
  return response;
}

void Coordinator::AddMembers(wire::ClaimStepsResponse& response) const {
  if (!options_.is_mirrored) return;
  response.set_group_secret(options_.group_secret);
  for (const auto& [id, member] : membership_.members()) {
    if (id.role != "worker") continue;
    const auto replicas = plan_->ReplicasOf(member.incarnation);
    if (!replicas) continue;
    wire::GroupMember* entry = response.add_member();
    entry->mutable_task()->set_role(id.role);
    entry->mutable_task()->set_index(id.index);
    entry->mutable_task()->set_incarnation(member.incarnation);
    entry->set_address(member.collective_address);
    entry->mutable_replica()->Assign(replicas->begin(), replicas->end());
  }
  // A group without the chief's machine could go on beside another one.
  const bool has_worker0 =
      response.member_size() > 0 && response.member(0).task().index() == 0;
  if (!has_worker0) response.clear_member();
}

void Coordinator::NameAwaited(wire::ClaimStepsResponse& response) const {
  for (std::string& task : AwaitedTasks()) {
    response.add_awaited_task(std::move(task));
  }
}

void Coordinator::ResumeWorker(const wire::ClaimStepsRequest& request,
                               absl::Time now) {
  const auto it = set_aside_.find(request.task().incarnation());
  if (it == set_aside_.end()) return;
  const bool holds_none =
      request.granted_steps() <= request.completed_steps() &&
      request.started_steps() <= request.completed_steps();
  // Others come first.
  if (!holds_none || now - it->second < kSetAside) return;
  set_aside_.erase(it);
  plan_->Enter(request.task().incarnation(),
               {.completed = request.completed_steps(),
                .shard = RankOf(request.task(), options_.tasks)});
}

void Coordinator::CheckProgress(absl::Time now) {
  if (phases_.phase() != wire::TRAINING || !board_.AllReady())
    watch_.StartOver(now);
  for (const uint64_t worker : watch_.Still(options_.worker_timeout, now)) {
    plan_->Release(worker);
    watch_.Forget(worker);
    set_aside_[worker] = now;
  }
}

void Coordinator::WatchEvaluations(absl::Time now) {
  evaluations_.Observe(
      {.global_step = plan_->global_step(),
       .is_training = phases_.phase() == wire::TRAINING && !stop_requested_,
       .is_failing = schedule_.failures() > 0,
       .has_evaluator = membership_.CountAlive("evaluator") > 0,
       .now = now});
  plan_->SetLimit(evaluations_.lag().StepLimit());
}

void Coordinator::AddLosses(wire::JobStatus& status) const {
  status.set_loss_sum(reports_.loss_sum());
  status.set_loss_examples(reports_.loss_examples());
  status.mutable_output_loss_sum()->Assign(reports_.output_loss_sums().begin(),
                                           reports_.output_loss_sums().end());
  // The points of a curve are differences of one kind of sums.
  const EpochLosses::Sums total = reports_.epochs().Total();
  if (total.examples > 0) {
    status.set_loss_sum(total.loss_sum);
    status.set_loss_examples(total.examples);
    status.mutable_output_loss_sum()->Assign(total.output_loss_sums.begin(),
                                             total.output_loss_sums.end());
  }
  for (const EpochLosses::End& end : reports_.epochs().ends()) {
    if (!phases_.training_since()) break;
    wire::EpochEnd* entry = status.add_epoch_end();
    entry->set_step(end.step);
    *entry->mutable_trained() = ToProto(end.time - *phases_.training_since());
    entry->set_loss_sum(end.sums.loss_sum);
    entry->set_loss_examples(end.sums.examples);
    entry->set_is_complete(end.is_complete);
    entry->mutable_output_loss_sum()->Assign(end.sums.output_loss_sums.begin(),
                                             end.sums.output_loss_sums.end());
    if (rate_) entry->set_learning_rate(rate_->At(end.step));
    if (given_rate_) entry->set_learning_rate(*given_rate_);
  }
}

void Coordinator::AddEvaluations(wire::JobStatus& status) const {
  if (evaluations_.lag().evaluated_to() >= 0) {
    status.set_evaluated_step(evaluations_.lag().evaluated_to());
  }
  status.set_due_evaluations(evaluations_.lag().due());
  if (!evaluations_.lag().awaited()) return;
  status.set_awaited_evaluation(*evaluations_.lag().awaited());
  *status.mutable_evaluation_waited() = ToProto(evaluations_.lag().waited());
}

bool Coordinator::IsNews(const wire::ClaimStepsRequest& request,
                         const wire::ClaimStepsResponse& response) {
  return response.phase() >= wire::FINISHING ||
         response.granted_steps() > request.granted_steps() ||
         response.assignment_version() != request.assignment_version() ||
         (request.end_step() != 0 && response.end_step() != request.end_step());
}

bool Coordinator::MayHaveOrder(absl::Time now) const {
  return phases_.phase() != wire::TRAINING || stop_requested_ ||
         leaving_.NeedCheckpoint() ||
         given_rate_ != evaluations_.decisions().learning_rate() ||
         schedule_.IsDue(plan_->global_step(), now) ||
         evaluations_.IsDue(plan_->global_step(), now);
}

// A step that the writer of checkpoints has is not lost with another worker.
bool Coordinator::Counts(const wire::Task& worker) const {
  return !options_.is_mirrored || worker.index() == 0;
}

bool Coordinator::MayCount() const {
  return phases_.phase() >= wire::TRAINING || options_.resumed.has_value();
}

bool Coordinator::MayGrant() const {
  return phases_.phase() == wire::TRAINING && !stop_requested_ &&
         !AwaitsReturns();
}

// A chief that has restarted knows how far a worker is when that has registered
// again. Bounded staleness goes by the slowest worker, and an early end by the
// steps of them all, those in flight included. A worker that is not back within
// a lease has lost it.
bool Coordinator::AwaitsReturns() const {
  if (phases_.phase() != wire::TRAINING || !options_.resumed ||
      last_tick_ - start_ >= options_.lease) {
    return false;
  }
  const int alive = membership_.CountAlive("worker");
  if (evaluations_.decisions().stop() && !ended_early_) {
    return alive < worker_places_ || static_cast<int>(idle_.size()) < alive;
  }
  return options_.job.parameter_server().has_bounded_staleness() &&
         alive < worker_places_;
}

std::vector<std::string> Coordinator::AwaitedTasks() const {
  std::vector<std::string> names;
  if (phases_.HasEnded()) return names;
  if (AwaitsReturns()) {
    for (const TaskId& id : membership_.Absent("worker")) {
      names.push_back(id.ToString());
    }
    for (const auto& [id, member] : membership_.members()) {
      const bool is_busy = member.alive && !idle_.contains(member.incarnation);
      if (evaluations_.decisions().stop() && id.role == "worker" && is_busy) {
        names.push_back(id.ToString());
      }
    }
    return names;
  }
  if (evaluations_.lag().awaited() &&
      evaluations_.lag().waited() >= kEvaluatorNamed) {
    for (const auto& [id, address] : options_.tasks) {
      if (id.role == "evaluator") names.push_back(id.ToString());
    }
    return names;
  }
  std::vector<uint64_t> awaited = plan_->Awaited();
  const std::vector<uint64_t> still = watch_.Still(kStillNamed, last_tick_);
  awaited.insert(awaited.end(), still.begin(), still.end());
  for (const auto& [worker, since] : set_aside_) awaited.push_back(worker);
  std::sort(awaited.begin(), awaited.end());
  for (const auto& [id, member] : membership_.members()) {
    if (names.size() == kMaxNamedInAnswer) break;
    if (id.role == "worker" &&
        std::binary_search(awaited.begin(), awaited.end(),
                           member.incarnation)) {
      names.push_back(id.ToString());
    }
  }
  return names;
}

}  // namespace parasol
