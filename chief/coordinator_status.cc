// The part of the coordinator that says how the job goes.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "chief/absences.h"
#include "chief/coordinator.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {

wire::JobStatus Coordinator::Status() const {
  wire::JobStatus status;
  status.set_phase(phases_.phase());
  status.set_global_step(grants_.plan().global_step());
  status.set_end_step(grants_.plan().end_step().value_or(0));
  status.set_run_id(options_.run_id);
  status.set_examples_per_second(reports_.examples_per_second());
  if (reports_.loss()) status.set_loss(*reports_.loss());
  for (std::string& task : MissingTasks()) {
    status.add_missing_task(std::move(task));
  }
  status.set_failure(phases_.failure());
  status.set_trouble(orders_.trouble());
  status.set_steps_per_epoch(grants_.end().steps_per_epoch().value_or(0));
  if (rate_) status.set_learning_rate(rate_->At(grants_.plan().global_step()));
  if (orders_.given_rate()) status.set_learning_rate(*orders_.given_rate());
  AddLosses(status);
  AddEvaluations(status);
  if (grants_.plan().staleness())
    status.set_staleness(*grants_.plan().staleness());
  if (!waits_for_.empty()) {
    *status.mutable_waited() = ToProto(last_tick_ - waits_since_);
  }
  if (options_.resumed) {
    status.set_resumed_step(options_.resumed->global_step());
    status.set_resumed_from(options_.resumed_from);
    status.set_was_complete(options_.already_complete);
  }
  status.set_placement_skew(options_.is_mirrored ? 1 : board_.Skew());
  for (std::string& task : AwaitedTasks()) {
    status.add_awaited_task(std::move(task));
  }
  status.set_num_replicas_in_sync(
      options_.job.parameter_server().synchronous().replicas_to_aggregate());
  AddTasks(status);
  return status;
}

void Coordinator::AddTasks(wire::JobStatus& status) const {
  for (const auto& [id, member] : membership_.members()) {
    if (IsState(options_, id)) continue;
    wire::TaskStatus* task = status.add_task();
    task->mutable_task()->set_role(id.role);
    task->mutable_task()->set_index(id.index);
    task->set_address(options_.tasks.at(id));
    task->set_metrics_address(member.metrics_address);
    task->set_alive(member.alive);
    if (!member.alive) continue;
    const absl::Duration silence =
        last_tick_ - (member.lease_end - options_.lease);
    *task->mutable_silence() = ToProto(std::max(absl::ZeroDuration(), silence));
    if (phases_.phase() == wire::TRAINING && id.role == "worker") {
      paces_.Describe(id.index, silence, *task);
    }
  }
  if (phases_.phase() != wire::TRAINING) return;
  // A job that goes by evaluations has an evaluator, listed or not.
  const bool has_evaluator = HasEvaluationDecisions(options_.job);
  for (const TaskId& id :
       DispensableTasks(membership_, options_.absence_named,
                        *phases_.training_since(), last_tick_)) {
    const Membership::Member& member = membership_.members().at(id);
    const bool was_there = member.incarnation != 0;
    if (id.role == "evaluator" && !was_there && !has_evaluator &&
        options_.tasks.at(id).empty()) {
      continue;
    }
    const std::string name = NameOf(options_, id);
    const auto& missing = status.missing_task();
    if (std::count(missing.begin(), missing.end(), name) > 0) continue;
    wire::AbsentTask* absent = status.add_absent_task();
    absent->set_task(name);
    absent->set_was_there(was_there);
    *absent->mutable_absent() = ToProto(
        last_tick_ - std::max(member.absent_since, *phases_.training_since()));
  }
}

std::vector<std::string> Coordinator::MissingTasks() const {
  if (phases_.HasEnded()) return {};
  return NamesOf(
      parasol::MissingTasks(membership_, phases_.phase(), NeedsAllWorkers()));
}

std::vector<std::string> Coordinator::NamesOf(
    const std::vector<TaskId>& tasks) const {
  std::vector<std::string> names;
  for (const TaskId& task : tasks) {
    std::string name = NameOf(options_, task);
    if (std::count(names.begin(), names.end(), name) == 0) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

void Coordinator::WatchWaiting(absl::Time now) {
  std::vector<std::string> tasks = MissingTasks();
  if (tasks.empty()) tasks = AwaitedTasks();
  // The words of a trouble change with each attempt.
  std::string what = tasks.empty()
                         ? std::string(orders_.trouble().empty() ? "" : "?")
                         : absl::StrJoin(tasks, ",");
  if (what == waits_for_) return;
  waits_for_ = std::move(what);
  waits_since_ = now;
}

// While a ps is loaded all workers may wait for it.
void Coordinator::WatchPaces(absl::Time now) {
  if (phases_.phase() != wire::TRAINING) return paces_.Clear();
  if (!board_.AllReady()) return paces_.StartOver();
  paces_.Judge(now);
}

void Coordinator::NameStaying(absl::Time now, wire::JobStatus& status) const {
  if (!phases_.HasEnded()) return;
  for (std::string& name : NamesOf(Staying())) {
    status.add_staying_task(std::move(name));
  }
  *status.mutable_staying_limit() =
      ToProto(std::max(absl::ZeroDuration(),
                       phases_.LeaveDeadline(orders_.stop_requested()) - now));
}

}  // namespace parasol
