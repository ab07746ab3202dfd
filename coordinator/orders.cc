#include "coordinator/orders.h"

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/checkpoint/checkpoint_failure.h"
#include "cluster/checkpoint/run_history.h"

namespace parasol {
namespace {

std::optional<int64_t> NewestStepOf(const CoordinatorOptions& options) {
  return options.resumed
             ? std::optional<int64_t>(options.resumed->global_step())
             : std::nullopt;
}

std::map<int, int64_t> PsEpochs(const Membership& membership) {
  std::map<int, int64_t> epochs;
  for (const auto& [id, member] : membership.members()) {
    const int64_t epoch =
        member.predecessor == 0 ? member.epoch : member.predecessor_epoch;
    if (id.role == "ps" && epoch > 0) epochs[id.index] = epoch;
  }
  return epochs;
}

}  // namespace

Orders::Orders(const CoordinatorOptions& options, std::optional<double> rate,
               absl::Time now)
    : options_(options),
      is_synchronous_(options.job.parameter_server().has_synchronous()),
      schedule_(options.job.checkpoint(), NewestStepOf(options), now),
      given_rate_(rate) {}

void Orders::RequestStop(absl::Time now) {
  if (!stop_requested_at_) stop_requested_at_ = now;
}

void Orders::AskToLeave(uint64_t ps, absl::Time now) {
  if (leaving_.Ask(ps, now)) schedule_.TryNow();
}

void Orders::StartOver() {
  schedule_.StartOver();
  trouble_ = {};
}

std::optional<Order> Orders::Next(const Job& job, ShardBoard& board,
                                  absl::Time now) {
  const wire::JobPhase phase = job.phases.phase();
  if (job.phases.HasEnded() || job.phases.HasGivenUp() || stopped_) {
    return std::nullopt;
  }
  if (stop_requested_at_) return NextStop(job, board, now);
  if (phase == wire::WAITING_FOR_PS) return std::nullopt;
  EndStay(board);
  const std::optional<double> rate =
      job.evaluations.decisions().learning_rate();
  if (!leaving_.IsStay() && given_rate_ != rate && phase <= wire::TRAINING) {
    given_rate_ = rate;
    board.GiveJobAgain();
  }
  if (std::optional<Order> load = NextLoad(job, board, now)) return load;
  if (!board.AllReady() || !IsCheckpointDue(job, now)) return std::nullopt;
  return OrderCheckpoint(job, board, now);
}

std::optional<Order> Orders::NextLoad(const Job& job, const ShardBoard& board,
                                      absl::Time now) {
  std::vector<LoadOrder::Target> targets = loads_.Due(board, now);
  if (targets.empty()) return std::nullopt;
  return LoadOrder{.targets = std::move(targets),
                   .from_checkpoint = schedule_.newest_step().has_value(),
                   .ps_epochs = PsEpochs(job.membership),
                   .global_step = job.grants.plan().global_step(),
                   .learning_rate = given_rate_};
}

bool Orders::MayHaveNext(const Job& job, absl::Time now) const {
  const int64_t step = job.grants.plan().global_step();
  return job.phases.phase() != wire::TRAINING || stop_requested() ||
         leaving_.NeedCheckpoint() ||
         given_rate_ != job.evaluations.decisions().learning_rate() ||
         schedule_.IsDue(step, now) || job.evaluations.IsDue(step, now);
}

bool Orders::IsCheckpointDue(const Job& job, absl::Time now) const {
  if (!schedule_.MayTry(now)) return false;
  const wire::JobPhase phase = job.phases.phase();
  if (phase == wire::TRAINING) {
    const int64_t step = job.grants.plan().global_step();
    return schedule_.IsDue(step, now) || job.evaluations.IsDue(step, now) ||
           leaving_.IsCheckpointDue(now);
  }
  // In LOADING the first checkpoint of a new run.
  if (phase == wire::LOADING) return !schedule_.newest_step().has_value();
  return !AwaitsLastReports(job, now);
}

// The step is done when one worker has seen it at every shard's variables.
// Others' gradients of sparse tables may still be on their way.
bool Orders::AwaitsLastReports(const Job& job, absl::Time now) const {
  if (job.phases.phase() != wire::FINISHING || !is_synchronous_ ||
      now - job.phases.since() >= kLastReportLimit) {
    return false;
  }
  return job.grants.claims().IsAnyBefore(
      job.grants.plan().end_step().value_or(0));
}

bool Orders::AwaitsStandby(const Job& job, absl::Time now) const {
  return stop_requested_at_ && !stopped_ && job.may_be_acted_for &&
         now - *stop_requested_at_ < kStandbyLimit && HasSteps(job);
}

std::optional<Order> Orders::NextStop(const Job& job, const ShardBoard& board,
                                      absl::Time now) {
  if (AwaitsStandby(job, now)) {
    stop_ordered_ = false;
    return NextLoad(job, board, now);
  }
  // A ps that is silent is lost when its lease ends.
  if (job.has_standbys && stop_ordered_ && schedule_.failures() > 0 &&
      now - *stop_requested_at_ < kStandbyLimit) {
    if (!schedule_.MayTry(now)) return std::nullopt;
    stop_ordered_ = false;
  }
  if (!stop_ordered_ && AwaitsLastSteps(job, board, now)) return std::nullopt;
  // The last checkpoint lacks updates of a ps that asked after it was ordered.
  // A checkpoint that failed is not tried again by a chief without standbys.
  const bool is_lacking =
      leaving_.NeedCheckpoint() && schedule_.failures() == 0;
  if ((stop_ordered_ && !is_lacking) || !HasNews(job) || !board.AllReady()) {
    stopped_ = true;
    return std::nullopt;
  }
  stop_ordered_ = true;
  return OrderCheckpoint(job, board, now);
}

// Steps of which the chief has not heard yet may have been done since the
// newest checkpoint, unless the shards stay with it.
bool Orders::HasNews(const Job& job) const {
  const wire::JobPhase phase = job.phases.phase();
  if (phase == wire::FINISHING) return true;
  if (phase != wire::TRAINING) return false;
  const StepPlan& plan = job.grants.plan();
  const bool may_have_steps = is_synchronous_
                                  ? job.membership.CountAlive("worker") > 0
                                  : job.grants.claims().HoldSteps(plan);
  return HasSteps(job) || leaving_.NeedCheckpoint() ||
         (may_have_steps && !leaving_.IsStay());
}

bool Orders::HasSteps(const Job& job) const {
  return job.grants.plan().global_step() > schedule_.newest_step().value_or(-1);
}

// Steps of synchronous training end with the cut. With a ps that leaves none is
// completed, but some may be whose reports are on their way.
bool Orders::AwaitsLastSteps(const Job& job, const ShardBoard& board,
                             absl::Time now) const {
  const absl::Duration limit =
      leaving_.IsAnyLeaving() ? kLeaveDelay : kLastStepsLimit;
  return job.phases.phase() == wire::TRAINING && board.AllReady() &&
         !leaving_.IsStay() && !is_synchronous_ &&
         now - *stop_requested_at_ < limit &&
         job.grants.claims().HoldSteps(job.grants.plan());
}

void Orders::EndStay(ShardBoard& board) {
  if (!leaving_.IsStay() || leaving_.IsAnyLeaving() || !board.AllReady()) {
    return;
  }
  leaving_.EndStay();
  board.GiveJobAgain();
}

CheckpointOrder Orders::OrderCheckpoint(const Job& job, const ShardBoard& board,
                                        absl::Time now) {
  const StepPlan& plan = job.grants.plan();
  CheckpointOrder order;
  durable::CheckpointManifest& manifest = order.manifest;
  manifest.set_global_step(plan.global_step());
  order.at_one_step = is_synchronous_;
  // Otherwise all steps that there are, are complete: a shard that is behind
  // was restored, and goes on when it hears of them.
  const bool is_training = job.phases.phase() == wire::TRAINING;
  may_await_workers_ = order.at_one_step && is_training &&
                       job.membership.CountAlive("worker") > 0;
  order.may_await = may_await_workers_ || !is_training;
  order.stay = stop_requested() || leaving_.NeedCheckpoint();
  leaving_.Ordered();
  manifest.set_run_id(options_.run_id);
  RunHistory(options_.resumed, options_.chief_epoch).AddTo(manifest);
  *manifest.mutable_epochs_seen() = job.grants.end().Seen();
  *manifest.mutable_job() = options_.job;
  options_.contents.AddTo(manifest);
  const std::vector<durable::WorkerProgress> progress = plan.Progress();
  manifest.mutable_worker_progress()->Assign(progress.begin(), progress.end());
  const std::vector<durable::BatchSpan> unfinished = plan.Unfinished();
  manifest.mutable_unfinished_batch()->Assign(unfinished.begin(),
                                              unfinished.end());
  if (job.files != nullptr) job.files->AddTo(*manifest.mutable_followed());
  manifest.set_final(job.phases.phase() == wire::FINISHING);
  order.evaluated_from = job.evaluations.DueFrom(plan.global_step(), now);
  manifest.set_evaluation_due(order.IsEvaluatedAt(plan.global_step()));
  manifest.set_reduced_learning_rate(given_rate_.value_or(0));
  for (size_t shard = 0; shard < board.size(); ++shard) {
    order.incarnations.push_back(board.incarnation(shard));
  }
  return order;
}

bool Orders::AwaitsNobody(const Membership& membership) const {
  return stop_requested() && may_await_workers_ &&
         membership.CountAlive("worker") == 0;
}

CallsInVain Orders::InVain(const Order& order, const Job& job,
                           const ShardBoard& board, absl::Time now) const {
  CallsInVain in_vain;
  if (const auto* load = std::get_if<LoadOrder>(&order)) {
    for (const LoadOrder::Target& target : load->targets) {
      if (!board.IsAt(target.shard, target.incarnation)) {
        in_vain.shards.push_back(target.shard);
      }
    }
    return in_vain;
  }
  const auto& checkpoint = std::get<CheckpointOrder>(order);
  const std::vector<uint64_t>& incarnations = checkpoint.incarnations;
  for (size_t shard = 0; shard < incarnations.size(); ++shard) {
    if (!board.IsReadyAt(shard, incarnations[shard])) {
      in_vain.shards.push_back(shard);
    }
  }
  if (!in_vain.shards.empty() && checkpoint.at_one_step) {
    in_vain.shards.resize(incarnations.size());
    std::iota(in_vain.shards.begin(), in_vain.shards.end(), 0);
  }
  in_vain.awaits_nobody = AwaitsNobody(job.membership);
  in_vain.is_obsolete = job.phases.phase() == wire::FINISHING &&
                        may_await_workers_ &&
                        now - job.phases.since() >= kLastReportLimit;
  return in_vain;
}

std::optional<absl::Status> Orders::LoadDone(const LoadOrder::Target& target,
                                             const absl::Status& status,
                                             ShardBoard& board,
                                             absl::Time now) {
  const bool was_ready = board.IsReadyAt(target.shard, target.incarnation);
  const ShardLoads::Verdict verdict = loads_.Done(target, status, board, now);
  if (verdict == ShardLoads::Verdict::kMoot) return std::nullopt;
  const std::string what =
      absl::StrCat(NameOf(options_, {"ps", board.shard(target.shard).ps_index}),
                   ": ", status.message());
  const std::string trouble = absl::StrCat("can't load ", what);
  if (!status.ok()) trouble_ = {trouble, wire::Finding::LOADING};
  // Other shards may still have theirs.
  if (status.ok() && absl::StartsWith(trouble_.text, trouble)) trouble_ = {};
  switch (verdict) {
    case ShardLoads::Verdict::kLoaded:
      // The last attempt may have failed for want of this shard.
      if (!was_ready) schedule_.TryNow();
      return absl::OkStatus();
    case ShardLoads::Verdict::kMoot:
    case ShardLoads::Verdict::kAgain:
      return std::nullopt;
    case ShardLoads::Verdict::kFailed:
      return absl::FailedPreconditionError(what);
    case ShardLoads::Verdict::kGaveUp:
      return absl::UnavailableError(
          absl::StrCat("loading failed ", loads_.failures(), " times: ", what));
  }
  return std::nullopt;
}

std::optional<absl::Status> Orders::CheckpointDone(const CheckpointOrder& order,
                                                   const absl::Status& status,
                                                   const Job& job,
                                                   ShardBoard& board,
                                                   absl::Time now) {
  const bool awaited_nobody = AwaitsNobody(job.membership);
  may_await_workers_ = false;
  leaving_.Done(status.ok());
  if (order.stay) {
    if (status.ok()) {
      leaving_.Stay(order.incarnations);
    } else {
      // Some may stay all the same.
      leaving_.EndStay();
      board.GiveJobAgain();
    }
  }
  if (status.ok()) {
    trouble_ = {};
    schedule_.Written(order.manifest.global_step(), now);
    return absl::OkStatus();
  }
  // The next one awaits no worker, or takes another cut.
  if (awaited_nobody || absl::IsAborted(status)) stop_ordered_ = false;
  // The final one follows at once.
  const wire::JobPhase phase = job.phases.phase();
  if (phase == wire::FINISHING && !order.manifest.final()) return std::nullopt;
  return CheckpointFailed(order.manifest.global_step(), status, phase, now);
}

std::optional<absl::Status> Orders::CheckpointFailed(int64_t step,
                                                     const absl::Status& status,
                                                     wire::JobPhase phase,
                                                     absl::Time now) {
  const bool is_awaited = phase != wire::TRAINING || leaving_.NeedCheckpoint();
  schedule_.Failed(now, is_awaited ? CheckpointSchedule::kMaxAwaitedBackoff
                                   : CheckpointSchedule::kMaxBackoff);
  trouble_ = {DescribeFailure(step, schedule_.failures(), status),
              wire::Finding::CHECKPOINT};
  // While training the next one may succeed; the first and the last must.
  if (phase == wire::TRAINING ||
      now - schedule_.failing_since() < options_.checkpoint_timeout) {
    return std::nullopt;
  }
  return EndWithoutCheckpoint(step, options_.checkpoint_timeout, status);
}

}  // namespace parasol
