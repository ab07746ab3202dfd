#include "coordinator/job_account.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/job/learning_rate_field.h"
#include "cluster/job/training_end.h"
#include "cluster/progress/curve_points.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/absences.h"

namespace parasol {
namespace {

// The rate by the optimizer and its schedule.
std::optional<LearningRate> RateOf(const job::Optimizer& optimizer) {
  if (optimizer.kind_case() == job::Optimizer::KIND_NOT_SET) {
    return std::nullopt;
  }
  absl::StatusOr<LearningRate> rate = LearningRate::Create(
      InitialLearningRate(optimizer), optimizer.learning_rate_schedule());
  return rate.ok() ? std::optional<LearningRate>(*std::move(rate))
                   : std::nullopt;
}

void AddEvaluations(const EvaluationLag& lag, wire::JobStatus& status) {
  if (lag.evaluated_to() >= 0) status.set_evaluated_step(lag.evaluated_to());
  status.set_due_evaluations(lag.due());
  if (!lag.awaited()) return;
  status.set_awaited_evaluation(*lag.awaited());
  *status.mutable_evaluation_waited() = ToProto(lag.waited());
}

// Adds the tasks that training goes on without.
void AddAbsentTasks(const JobView& job, wire::JobStatus& status) {
  if (job.phases.phase() != wire::TRAINING) return;
  const absl::Time training_since = *job.phases.training_since();
  // A job that goes by evaluations has an evaluator, listed or not.
  const bool has_evaluator = HasEvaluationDecisions(job.options.job);
  for (const TaskId& id :
       DispensableTasks(job.membership, job.options.absence_named,
                        training_since, job.last_tick)) {
    if (id.role == "worker" && job.options.has_elastic_workers) continue;
    const Membership::Member& member = job.membership.members().at(id);
    const bool was_there = member.incarnation != 0;
    if (id.role == "evaluator" && !was_there && !has_evaluator &&
        job.options.tasks.at(id).empty()) {
      continue;
    }
    const std::string name = NameOf(job.options, id);
    const auto& missing = status.missing_task();
    if (std::count(missing.begin(), missing.end(), name) > 0) continue;
    wire::AbsentTask* absent = status.add_absent_task();
    absent->set_task(name);
    absent->set_was_there(was_there);
    *absent->mutable_absent() =
        ToProto(job.last_tick - std::max(member.absent_since, training_since));
  }
}

// The finding says what kind of trouble it is (AddFindings()).
void AddTrouble(const Trouble& trouble, wire::JobStatus& status) {
  if (trouble.text.empty()) return;
  status.set_trouble(trouble.text);
  wire::Finding& finding = *status.add_finding();
  finding.set_kind(trouble.kind);
  finding.set_text(trouble.text);
}

// Says where a ps serves that acts for a lost one.
void AddActing(const ShardBoard& board, const TaskId& id,
               wire::TaskStatus& task) {
  for (size_t shard = 0; id.role == "ps" && shard < board.size(); ++shard) {
    if (board.shard(shard).ps_index != id.index || !board.host(shard) ||
        !task.alive()) {
      continue;
    }
    task.set_address(board.address(shard));
    task.set_acted_by(TaskId{"ps", *board.host(shard)}.ToString());
  }
}

// Adds the tasks that a job that has ended waits for, and for how long.
void AddStayingTasks(const JobView& job, absl::Time now,
                     wire::JobStatus& status) {
  if (!job.phases.HasEnded()) return;
  for (std::string& name : StayingTaskNames(job)) {
    status.add_staying_task(std::move(name));
  }
  const absl::Time deadline = job.phases.LeaveDeadline(job.look.is_stopping);
  *status.mutable_staying_limit() =
      ToProto(std::max(absl::ZeroDuration(), deadline - now));
}

// The names by which tasks speak of each other.
TaskReports::Names NamesOf(const JobView& job) {
  TaskReports::Names names;
  for (const ShardBoard::Shard& shard : job.options.shards) {
    names.shards.push_back(NameOf(job.options, {"ps", shard.ps_index}));
  }
  for (const auto& [id, member] : job.membership.members()) {
    if (id.role == "worker" && member.alive) {
      names.workers[member.incarnation] = id.ToString();
    }
  }
  return names;
}

}  // namespace

JobAccount::JobAccount(const CoordinatorOptions& options)
    : options_(options),
      rate_(RateOf(options.job.optimizer())),
      warnings_(WarningsOf(options)),
      reports_(options.resumed ? options.resumed->global_step() : 0),
      paces_(options.pace, options.job.parameter_server().has_synchronous()) {}

void JobAccount::Begin(const wire::RegisterRequest& task) {
  tasks_.Begin(task);
  if (task.task().role() != "worker") return;
  if (task.place_epoch() == 0) reports_.Begin(task.task().incarnation());
}

void JobAccount::Keep(const wire::HeartbeatRequest& task, absl::Time now) {
  tasks_.Keep(task);
  if (task.task().role() != "worker") return;
  reports_.Keep(task);
  if (!task.has_totals()) return;
  paces_.Report(task.task().index(), task.task().incarnation(), task.totals(),
                now);
}

void JobAccount::Forget(int worker) {
  reports_.Forget(worker);
  paces_.Forget(worker);
}

void JobAccount::Warn(absl::string_view line) {
  constexpr size_t kMostWarnings = 16;
  std::string shown = OneLine(line);
  const bool is_known =
      std::find(warnings_.begin(), warnings_.end(), shown) != warnings_.end();
  if (is_known || warnings_.size() >= kMostWarnings) return;
  warnings_.push_back(std::move(shown));
}

void JobAccount::Reach(const StepGrants& grants, absl::Time now) {
  const CurvePoints points(grants.end().steps_per_epoch().value_or(0),
                           options_.job.summary().every_steps());
  reports_.epochs().Reach(grants.plan().global_step(), points,
                          grants.end().examples_per_epoch(), now);
}

void JobAccount::Look(const JobView& job, absl::Time now) {
  std::vector<std::string> tasks = MissingTaskNames(job);
  if (tasks.empty()) tasks = AwaitedTaskNames(job);
  // The words of a trouble change with each attempt.
  std::string what = tasks.empty()
                         ? std::string(TroubleOf(job).text.empty() ? "" : "?")
                         : absl::StrJoin(tasks, ",");
  if (what != waits_for_) {
    waits_for_ = std::move(what);
    waits_since_ = now;
  }
  if (job.phases.phase() != wire::TRAINING) return paces_.Clear();
  // While a ps is loaded all workers may wait for it.
  if (!job.board.AllReady()) return paces_.StartOver();
  paces_.Judge(now);
}

wire::JobStatus JobAccount::Status(const JobView& job, absl::Time now) const {
  const StepPlan& plan = job.grants.plan();
  wire::JobStatus status;
  status.set_phase(job.phases.phase());
  status.set_global_step(plan.global_step());
  const int64_t end = plan.end_step().value_or(0);
  const bool ends_by_itself =
      end >= kEndless &&
      (options_.ends_with_workers || options_.job.end().has_never());
  status.set_end_step(ends_by_itself ? 0 : end);
  status.set_run_id(options_.run_id);
  status.set_failure(job.phases.failure());
  AddTrouble(TroubleOf(job), status);
  status.set_steps_per_epoch(job.grants.end().steps_per_epoch().value_or(0));
  status.set_doubled_batches(plan.doubled_batches());
  status.mutable_warning()->Assign(warnings_.begin(), warnings_.end());
  if (plan.staleness()) status.set_staleness(*plan.staleness());
  status.set_placement_skew(options_.is_mirrored ? 1 : job.board.Skew());
  status.set_num_replicas_in_sync(
      options_.job.parameter_server().synchronous().replicas_to_aggregate());
  if (options_.resumed) {
    status.set_resumed_step(options_.resumed->global_step());
    status.set_resumed_from(options_.resumed_from);
    status.set_was_complete(options_.already_complete);
  }
  const std::optional<absl::Duration> trained = job.phases.Trained(now);
  if (trained) *status.mutable_trained() = ToProto(*trained);
  AddRates(job, status);
  AddLosses(job, status);
  AddEvaluations(job.evaluations.lag(), status);
  AddWaits(job, status);
  AddTasks(job, status);
  AddAbsentTasks(job, status);
  AddStayingTasks(job, now, status);
  return status;
}

void JobAccount::AddRates(const JobView& job, wire::JobStatus& status) const {
  status.set_examples_per_second(reports_.examples_per_second());
  if (reports_.loss()) status.set_loss(*reports_.loss());
  if (rate_) {
    status.set_learning_rate(rate_->At(job.grants.plan().global_step()));
  }
  const std::optional<double> given = job.orders.given_rate();
  if (given) status.set_learning_rate(*given);
}

void JobAccount::AddLosses(const JobView& job, wire::JobStatus& status) const {
  status.set_loss_sum(reports_.loss_sum());
  status.set_loss_examples(reports_.loss_examples());
  status.mutable_output_loss_sum()->Assign(reports_.output_loss_sums().begin(),
                                           reports_.output_loss_sums().end());
  ToMessages(reports_.recorded(), *status.mutable_recorded());
  // The points of a curve are differences of one kind of sums.
  const EpochLosses::Sums total = reports_.epochs().Total();
  if (total.examples > 0) {
    status.set_loss_sum(total.loss_sum);
    status.set_loss_examples(total.examples);
    status.mutable_output_loss_sum()->Assign(total.output_loss_sums.begin(),
                                             total.output_loss_sums.end());
  }
  if (!job.phases.training_since()) return;
  status.set_seen_from(reports_.epochs().seen_from());
  for (const EpochLosses::End& end : reports_.epochs().ends()) {
    wire::EpochEnd* entry = status.add_epoch_end();
    entry->set_step(end.step);
    *entry->mutable_trained() =
        ToProto(end.time - *job.phases.training_since());
    entry->set_loss_sum(end.sums.loss_sum);
    entry->set_loss_examples(end.sums.examples);
    entry->set_is_complete(end.is_complete);
    entry->set_seen_from(end.seen_from);
    entry->mutable_output_loss_sum()->Assign(end.sums.output_loss_sums.begin(),
                                             end.sums.output_loss_sums.end());
    if (rate_) entry->set_learning_rate(rate_->At(end.step));
    const std::optional<double> given = job.orders.given_rate();
    if (given) entry->set_learning_rate(*given);
  }
}

void JobAccount::AddWaits(const JobView& job, wire::JobStatus& status) const {
  for (std::string& task : MissingTaskNames(job)) {
    status.add_missing_task(std::move(task));
  }
  for (std::string& task : AwaitedTaskNames(job)) {
    status.add_awaited_task(std::move(task));
  }
  if (waits_for_.empty()) return;
  *status.mutable_waited() = ToProto(job.last_tick - waits_since_);
}

void JobAccount::AddTasks(const JobView& job, wire::JobStatus& status) const {
  const TaskReports::Names names = NamesOf(job);
  for (const auto& [id, member] : job.membership.members()) {
    if (IsState(options_, id)) continue;
    wire::TaskStatus* task = status.add_task();
    task->mutable_task()->set_role(id.role);
    task->mutable_task()->set_index(id.index);
    task->set_address(options_.tasks.at(id));
    task->set_metrics_address(member.metrics_address);
    task->set_alive(member.alive);
    task->set_doubled(member.doubled);
    AddActing(job.board, id, *task);
    if (!member.alive) continue;
    tasks_.Describe(id, member.incarnation, names, *task);
    const absl::Duration silence =
        job.last_tick - (member.lease_end - options_.lease);
    *task->mutable_silence() = ToProto(std::max(absl::ZeroDuration(), silence));
    if (job.phases.phase() == wire::TRAINING && id.role == "worker") {
      paces_.Describe(id.index, silence, *task);
    }
  }
}

}  // namespace parasol
