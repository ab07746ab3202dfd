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
// Time for which a job waits for an evaluation before the evaluator is named:
// under max_lag: 0 it waits for each one.
constexpr absl::Duration kEvaluatorNamed = absl::Seconds(5);

}  // namespace

absl::StatusOr<wire::ClaimStepsResponse> Coordinator::ClaimSteps(
    const wire::ClaimStepsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  RETURN_IF_ERROR(grants_.Take(request, phases_.phase(), now))
      << TaskId::Of(request.task()).ToString();
  Advance(now);
  wire::ClaimStepsResponse response;
  grants_.Answer(request, LookAtGrants(), now, response);
  if (response.assignment_version() != request.assignment_version()) {
    AddMembers(response);
  }
  if (!request.has_wait() && !IsNews(request, response) &&
      grants_.claims().IsIdle(request.task().incarnation())) {
    NameAwaited(response);
  }
  return response;
}

void Coordinator::AddMembers(wire::ClaimStepsResponse& response) const {
  if (!options_.is_mirrored) return;
  response.set_group_secret(options_.group_secret);
  for (const auto& [id, member] : membership_.members()) {
    if (id.role != "worker") continue;
    const auto replicas = grants_.plan().ReplicasOf(member.incarnation);
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

void Coordinator::WatchEvaluations(absl::Time now) {
  evaluations_.Observe(
      {.global_step = grants_.plan().global_step(),
       .is_training =
           phases_.phase() == wire::TRAINING && !orders_.stop_requested(),
       .is_failing = orders_.schedule().failures() > 0,
       .has_evaluator = membership_.CountAlive("evaluator") > 0,
       .now = now});
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
    if (orders_.given_rate()) entry->set_learning_rate(*orders_.given_rate());
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

bool Coordinator::MayHaveOrder(absl::Time now) const {
  return orders_.MayHaveNext(ForOrders(), now);
}

StepGrants::Look Coordinator::LookAtGrants() const {
  return {.phase = phases_.phase(),
          .is_stopping = orders_.stop_requested(),
          .workers = membership_.CountAlive("worker"),
          .may_return = options_.resumed && IsNew(),
          .ends_early = evaluations_.decisions().stop().has_value(),
          .limit = evaluations_.lag().StepLimit()};
}

std::vector<std::string> Coordinator::AwaitedTasks() const {
  std::vector<std::string> names;
  if (phases_.HasEnded()) return names;
  if (grants_.AwaitsReturns(LookAtGrants())) {
    for (const TaskId& id : membership_.Absent("worker")) {
      names.push_back(id.ToString());
    }
    for (const auto& [id, member] : membership_.members()) {
      const bool is_busy =
          member.alive && !grants_.claims().IsIdle(member.incarnation);
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
  std::vector<uint64_t> awaited = grants_.plan().Awaited();
  const std::vector<uint64_t> still = grants_.claims().Still(last_tick_);
  awaited.insert(awaited.end(), still.begin(), still.end());
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
