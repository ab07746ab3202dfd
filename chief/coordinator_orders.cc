// The part of the coordinator that gives orders and hears of their results.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/coordinator.h"
#include "cluster/checkpoint/checkpoint_failure.h"
#include "cluster/checkpoint/run_history.h"

namespace parasol {

std::optional<Coordinator::Order> Coordinator::NextOrder(absl::Time now) {
  if (phases_.HasEnded() || phases_.HasGivenUp() || stopped_)
    return std::nullopt;
  if (stop_requested_) return NextStopOrder(now);
  if (phases_.phase() == wire::WAITING_FOR_PS) return std::nullopt;
  EndStay();
  if (!leaving_.IsStay() &&
      given_rate_ != evaluations_.decisions().learning_rate() &&
      phases_.phase() <= wire::TRAINING) {
    given_rate_ = evaluations_.decisions().learning_rate();
    board_.GiveJobAgain();
  }
  std::vector<LoadOrder::Target> targets = loads_.Due(board_, now);
  if (!targets.empty()) {
    return LoadOrder{.targets = std::move(targets),
                     .from_checkpoint = schedule_.newest_step().has_value(),
                     .ps_epochs = PsEpochs(),
                     .global_step = grants_.plan().global_step(),
                     .learning_rate = given_rate_};
  }
  if (!board_.AllReady() || !IsCheckpointDue(now)) return std::nullopt;
  return OrderCheckpoint(now);
}

bool Coordinator::IsCheckpointDue(absl::Time now) const {
  if (!schedule_.MayTry(now)) return false;
  if (phases_.phase() == wire::TRAINING) {
    return schedule_.IsDue(grants_.plan().global_step(), now) ||
           evaluations_.IsDue(grants_.plan().global_step(), now) ||
           (leaving_.NeedCheckpoint() && now - leave_asked_at_ >= kLeaveDelay);
  }
  // In LOADING the first checkpoint of a new run.
  if (phases_.phase() == wire::LOADING)
    return !schedule_.newest_step().has_value();
  return !AwaitsLastReports(now);
}

// The step is done when one worker has seen it at every shard's variables.
// Others' gradients of sparse tables may still be on their way.
bool Coordinator::AwaitsLastReports(absl::Time now) const {
  if (phases_.phase() != wire::FINISHING ||
      !options_.job.parameter_server().has_synchronous() ||
      now - phases_.since() >= kLastReportLimit) {
    return false;
  }
  return grants_.claims().IsAnyBefore(grants_.plan().end_step().value_or(0));
}

std::vector<std::string> Coordinator::Evaluated(
    absl::Span<const Evaluation> evaluations, absl::Time now) {
  std::vector<std::string> lines = evaluations_.Update(evaluations);
  Advance(now);
  return lines;
}

std::optional<Coordinator::Order> Coordinator::NextStopOrder(absl::Time now) {
  if (!stop_ordered_ && AwaitsLastSteps(now)) return std::nullopt;
  // A ps that asked after the last one was ordered has updates that it lacks.
  // One that failed is not tried again.
  const bool is_lacking =
      leaving_.NeedCheckpoint() && schedule_.failures() == 0;
  if ((stop_ordered_ && !is_lacking) || !HasNews() || !board_.AllReady()) {
    stopped_ = true;
    return std::nullopt;
  }
  stop_ordered_ = true;
  return OrderCheckpoint(now);
}

// Steps of which the chief has not heard yet may have been done since the
// newest checkpoint, unless the shards stay with it.
bool Coordinator::HasNews() const {
  if (phases_.phase() == wire::FINISHING) return true;
  if (phases_.phase() != wire::TRAINING) return false;
  const bool is_synchronous = options_.job.parameter_server().has_synchronous();
  const bool may_have_steps =
      is_synchronous ? membership_.CountAlive("worker") > 0 : HoldSteps();
  return grants_.plan().global_step() > schedule_.newest_step().value_or(-1) ||
         leaving_.NeedCheckpoint() || (may_have_steps && !leaving_.IsStay());
}

bool Coordinator::HoldSteps() const {
  return grants_.claims().HoldSteps(grants_.plan());
}

// Steps of synchronous training end with the cut. With a ps that leaves none is
// completed, but some may be whose reports are on their way.
bool Coordinator::AwaitsLastSteps(absl::Time now) const {
  const absl::Duration limit =
      leaving_.IsAnyLeaving() ? kLeaveDelay : kLastStepsLimit;
  return phases_.phase() == wire::TRAINING && board_.AllReady() &&
         !leaving_.IsStay() &&
         !options_.job.parameter_server().has_synchronous() &&
         now - stop_requested_at_ < limit && HoldSteps();
}

void Coordinator::EndStay() {
  if (!leaving_.IsStay() || leaving_.IsAnyLeaving() || !board_.AllReady())
    return;
  leaving_.EndStay();
  board_.GiveJobAgain();
}

bool Coordinator::IsCheckpointObsolete(absl::Time now) const {
  return phases_.phase() == wire::FINISHING && may_await_workers_ &&
         now - phases_.since() >= kLastReportLimit;
}

std::vector<size_t> Coordinator::ShardsInVain(const Order& order) const {
  std::vector<size_t> shards;
  if (const auto* load = std::get_if<LoadOrder>(&order)) {
    for (const LoadOrder::Target& target : load->targets) {
      if (!board_.IsAt(target.shard, target.incarnation)) {
        shards.push_back(target.shard);
      }
    }
    return shards;
  }
  const auto& checkpoint = std::get<CheckpointOrder>(order);
  const std::vector<uint64_t>& incarnations = checkpoint.incarnations;
  for (size_t shard = 0; shard < incarnations.size(); ++shard) {
    if (!board_.IsReadyAt(shard, incarnations[shard])) shards.push_back(shard);
  }
  if (!shards.empty() && checkpoint.at_one_step) {
    shards.resize(incarnations.size());
    std::iota(shards.begin(), shards.end(), 0);
  }
  return shards;
}

bool Coordinator::AwaitsNobody() const {
  return stop_requested_ && may_await_workers_ &&
         membership_.CountAlive("worker") == 0;
}

Coordinator::CheckpointOrder Coordinator::OrderCheckpoint(absl::Time now) {
  CheckpointOrder order;
  durable::CheckpointManifest& manifest = order.manifest;
  manifest.set_global_step(grants_.plan().global_step());
  order.at_one_step = options_.job.parameter_server().has_synchronous();
  // Otherwise all steps that there are, are complete: a shard that is behind
  // was restored, and goes on when it hears of them.
  const bool is_training = phases_.phase() == wire::TRAINING;
  may_await_workers_ =
      order.at_one_step && is_training && membership_.CountAlive("worker") > 0;
  order.may_await = may_await_workers_ || !is_training;
  order.stay = stop_requested_ || leaving_.NeedCheckpoint();
  leaving_.Ordered();
  manifest.set_run_id(options_.run_id);
  RunHistory(options_.resumed, options_.chief_epoch).AddTo(manifest);
  *manifest.mutable_job() = options_.job;
  options_.contents.AddTo(manifest);
  const std::vector<durable::WorkerProgress> progress =
      grants_.plan().Progress();
  manifest.mutable_worker_progress()->Assign(progress.begin(), progress.end());
  const std::vector<durable::BatchSpan> unfinished =
      grants_.plan().Unfinished();
  manifest.mutable_unfinished_batch()->Assign(unfinished.begin(),
                                              unfinished.end());
  manifest.set_final(phases_.phase() == wire::FINISHING);
  manifest.set_evaluation_due(
      evaluations_.IsDue(grants_.plan().global_step(), now));
  manifest.set_reduced_learning_rate(given_rate_.value_or(0));
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
  const bool was_ready = board_.IsReadyAt(target.shard, target.incarnation);
  const ShardLoads::Verdict verdict = loads_.Done(target, status, board_, now);
  if (verdict == ShardLoads::Verdict::kMoot) return;
  const std::string what = absl::StrCat(
      NameOf(options_, {"ps", board_.shard(target.shard).ps_index}), ": ",
      status.message());
  const std::string trouble = absl::StrCat("can't load ", what);
  if (!status.ok()) trouble_ = trouble;
  // Other shards may still have theirs.
  if (status.ok() && absl::StartsWith(trouble_, trouble)) trouble_.clear();
  switch (verdict) {
    case ShardLoads::Verdict::kLoaded:
      // The last attempt may have failed for want of this shard.
      if (!was_ready) schedule_.TryNow();
      return Advance(now);
    case ShardLoads::Verdict::kMoot:
    case ShardLoads::Verdict::kAgain:
      return;
    case ShardLoads::Verdict::kFailed:
      return phases_.Fail(absl::FailedPreconditionError(what), now);
    case ShardLoads::Verdict::kGaveUp:
      phases_.GiveUp(absl::UnavailableError(absl::StrCat(
          "loading failed ", loads_.failures(), " times: ", what)));
  }
}

void Coordinator::CheckpointDone(const CheckpointOrder& order,
                                 const absl::Status& status, absl::Time now) {
  const bool awaited_nobody = AwaitsNobody();
  may_await_workers_ = false;
  leaving_.Done(status.ok());
  if (order.stay) {
    if (status.ok()) {
      leaving_.Stay(order.incarnations);
    } else {
      // Some may stay all the same.
      leaving_.EndStay();
      board_.GiveJobAgain();
    }
  }
  if (status.ok()) {
    trouble_.clear();
    schedule_.Written(order.manifest.global_step(), now);
    if (order.manifest.evaluation_due()) {
      evaluations_.Written(order.manifest.global_step(), now);
    }
    if (order.manifest.final() && phases_.phase() == wire::FINISHING) {
      phases_.Enter(wire::COMPLETE, now);
    }
    Advance(now);
    return;
  }
  // The next one awaits no worker, or takes another cut.
  if (awaited_nobody || absl::IsAborted(status)) stop_ordered_ = false;
  // The final one follows at once.
  if (phases_.phase() == wire::FINISHING && !order.manifest.final()) return;
  CheckpointFailed(order.manifest.global_step(), status, now);
}

void Coordinator::CheckpointFailed(int64_t step, const absl::Status& status,
                                   absl::Time now) {
  const bool is_awaited =
      phases_.phase() != wire::TRAINING || leaving_.NeedCheckpoint();
  schedule_.Failed(now, is_awaited ? CheckpointSchedule::kMaxAwaitedBackoff
                                   : CheckpointSchedule::kMaxBackoff);
  trouble_ = DescribeFailure(step, schedule_.failures(), status);
  // While training the next one may succeed; the first and the last must.
  if (phases_.phase() == wire::TRAINING ||
      now - schedule_.failing_since() < options_.checkpoint_timeout) {
    return;
  }
  const absl::Status end =
      EndWithoutCheckpoint(step, options_.checkpoint_timeout, status);
  if (absl::IsUnavailable(end)) {
    phases_.GiveUp(end);
  } else {
    phases_.Fail(end, now);
  }
}

}  // namespace parasol
