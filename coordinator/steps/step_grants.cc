#include "coordinator/steps/step_grants.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace parasol {
namespace {

// Largest number of steps that a claim is granted.
constexpr int64_t kMaxWant = 1024;

// An exchange of many local steps is no standstill.
absl::Duration StillNamed(const job::Job& job, absl::Duration worker_timeout) {
  return job.parameter_server().has_local_steps()
             ? std::max(kStillNamed, worker_timeout / 2)
             : kStillNamed;
}

}  // namespace

StepGrants::StepGrants(const job::Job& job, std::unique_ptr<StepPlan> plan,
                       const Options& options)
    : options_(options),
      is_bounded_(job.parameter_server().has_bounded_staleness()),
      is_synchronous_(job.parameter_server().has_synchronous()),
      plan_(std::move(plan)),
      end_(job),
      claims_(StillNamed(job, options.worker_timeout)) {
  end_.GoOn(options.epochs_seen, options.resumed_step,
            options.resumed_examples_per_step);
  if (end_.step()) plan_->SetEnd(*end_.step());
}

void StepGrants::HearUpdates(const wire::Task& ps, int64_t updates) {
  applied_.Hear(ps.index(), ps.incarnation(), updates,
                plan_->completed_grants());
}

int64_t StepGrants::Believed(int64_t completed) const {
  if (options_.is_mirrored || !is_synchronous_) return completed;
  return std::min(completed, applied_.MostSteps());
}

void StepGrants::Enter(const wire::Task& worker, WorkerArrival arrival) {
  arrival.completed = Counts(worker) ? Believed(arrival.completed) : 0;
  claims_.Welcome(worker.incarnation());
  shards_[worker.incarnation()] = arrival.shard;
  plan_->Enter(worker.incarnation(), arrival);
}

void StepGrants::Report(const wire::Task& worker, int64_t completed,
                        wire::JobPhase phase) {
  if (!MayCount(phase) || !Counts(worker)) return;
  plan_->Report(worker.incarnation(), Believed(completed));
}

void StepGrants::Release(uint64_t worker) {
  plan_->Release(worker);
  claims_.Forget(worker);
  shards_.erase(worker);
}

void StepGrants::TakeBack(bool is_training, absl::Time now) {
  if (!is_training) claims_.StartOver(now);
  for (const uint64_t worker : claims_.SetAside(options_.worker_timeout, now)) {
    plan_->Release(worker);
  }
}

absl::Status StepGrants::Take(const wire::ClaimStepsRequest& claim,
                              wire::JobPhase phase, absl::Time now) {
  const uint64_t worker = claim.task().incarnation();
  // A claim that is refused says nothing of the data set either.
  RETURN_IF_ERROR(
      plan_->Check(worker, claim.completed_steps(), claim.started_steps()));
  const bool was_counted = end_.has_examples();
  RETURN_IF_ERROR(
      end_.ObserveExamples(claim.train_examples(), claim.shard_examples()));
  if (!was_counted) {
    plan_->SetShards(end_.ShardBatches());
    if (end_.step() && !ended_early_) plan_->SetEnd(*end_.step());
  }
  // Now that the end is known.
  RETURN_IF_ERROR(
      plan_->Check(worker, claim.completed_steps(), claim.started_steps()));
  Report(claim.task(), claim.completed_steps(), phase);
  if (MayCount(phase)) {
    plan_->Hears(worker, claim.assignment_version());
    // The end stays where it is once it is reached.
    if (phase <= wire::TRAINING) {
      plan_->ReportPushed(worker, claim.pushed_steps());
    }
  }
  if (claim.broken_assignment() != 0) {
    plan_->RenewAssignment(claim.broken_assignment());
  }
  claims_.Take(claim);
  if (claims_.Resume(claim, now)) {
    Enter(claim.task(),
          {.completed = claim.completed_steps(), .shard = shards_[worker]});
  }
  return absl::OkStatus();
}

void StepGrants::Answer(const wire::ClaimStepsRequest& claim, const Look& look,
                        absl::Time now, wire::ClaimStepsResponse& response) {
  response.set_phase(look.phase);
  const int64_t want = std::clamp(claim.want(), int64_t{0}, kMaxWant);
  plan_->Answer(claim, MayGrant(look) ? want : 0, look.workers, response);
  response.set_global_step(plan_->global_step());
  claims_.Answered(claim, plan_->HoldsSteps(claim.task().incarnation()), now);
}

void StepGrants::EndEarly(const Look& look) {
  if (look.phase != wire::TRAINING || !look.ends_early || AwaitsReturns(look)) {
    return;
  }
  if (ended_early_ || !plan_->end_step() || plan_->global_step() == 0) return;
  ended_early_ = true;
  plan_->EndEarly();
  ++news_;
}

void StepGrants::Observe(const Look& look) {
  plan_->SetLimit(look.limit);
  plan_->SetBatches(look.batches);
  if (MayGrant(look) == may_grant_) return;
  may_grant_ = !may_grant_;
  ++news_;
}

// A chief that has restarted knows how far a worker is when that has registered
// again. Bounded staleness goes by the slowest worker, and an early end by the
// steps of them all, those in flight included. A worker that is not back within
// a lease has lost it. In asynchronous training the batches that a worker has
// in flight would be granted to another, and be done twice: it is worth a
// moment, not a lease.
bool StepGrants::AwaitsReturns(const Look& look) const {
  if (look.phase != wire::TRAINING || !look.may_return) return false;
  const bool all_are_back = look.workers >= options_.places;
  if (look.ends_early && !ended_early_) {
    return !all_are_back || claims_.num_idle() < look.workers;
  }
  if (is_bounded_ && !all_are_back) return true;
  return look.return_now && !is_synchronous_ &&
         (!all_are_back || plan_->MayTell());
}

bool StepGrants::MayGrant(const Look& look) const {
  return look.phase == wire::TRAINING && !look.is_stopping &&
         !AwaitsReturns(look) && ArePushed();
}

// A step that the writer of checkpoints has is not lost with another worker.
bool StepGrants::Counts(const wire::Task& worker) const {
  return !options_.is_mirrored || worker.index() == 0;
}

bool IsNews(const wire::ClaimStepsRequest& request,
            const wire::ClaimStepsResponse& response) {
  return response.phase() >= wire::FINISHING ||
         response.granted_steps() > request.granted_steps() ||
         response.assignment_version() != request.assignment_version() ||
         (request.end_step() != 0 && response.end_step() != request.end_step());
}

}  // namespace parasol
