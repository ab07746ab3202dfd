#ifndef PARASOL_COORDINATOR_STEPS_STEP_GRANTS_H_
#define PARASOL_COORDINATOR_STEPS_STEP_GRANTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/job/training_end.h"
#include "coordinator/steps/applied_updates.h"
#include "coordinator/steps/step_plan.h"
#include "coordinator/steps/worker_claims.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The steps that workers are granted upon their claims: when there are any, up
// to which end, whose reports count, and which are taken back. The plan says
// whose they are. Pure. Workers are identified by their incarnations.
class StepGrants {
 public:
  struct Options {
    // Number of places that the cluster has for workers.
    int places = 0;
    // True if the run goes on from a checkpoint.
    bool is_resumed = false;
    // Epochs and step of that checkpoint.
    durable::EpochsSeen epochs_seen = {};
    int64_t resumed_step = 0;
    // Number of examples in a step of its job; 0: not known.
    int64_t resumed_examples_per_step = 0;
    // True if the workers have the variables.
    bool is_mirrored = false;
    // Time after which the steps of a worker that completes none are taken
    // back.
    absl::Duration worker_timeout;
  };

  // The job at a time, as far as grants go by it.
  struct Look {
    wire::JobPhase phase = wire::WAITING_FOR_PS;
    // True if the chief was told to end.
    bool is_stopping = false;
    // Number of live workers.
    int workers = 0;
    // True if workers of an earlier chief may yet come back to their places,
    // and if they do so in these moments unless they are lost.
    bool may_return = false;
    bool return_now = false;
    // True if evaluations have decided that the job ends early.
    bool ends_early = false;
    // Number of steps beyond which none may begin now.
    std::optional<int64_t> limit = std::nullopt;
    // Number of batches that a training set has now that grows.
    std::optional<int64_t> batches = std::nullopt;
  };

  StepGrants(const job::Job& job, std::unique_ptr<StepPlan> plan,
             const Options& options);

  // Notes what a ps says in a heartbeat that it has applied, and that it is
  // gone. Workers are believed as far as some ps has applied what they say that
  // they have completed.
  void HearUpdates(const wire::Task& ps, int64_t updates);
  void ForgetUpdates(int ps) { applied_.Forget(ps); }

  // Lets a worker that registers take part.
  void Enter(const wire::Task& worker, WorkerArrival arrival);
  // Takes the last total of a worker that leaves.
  void Report(const wire::Task& worker, int64_t completed,
              wire::JobPhase phase);
  // Takes back the steps of a worker that is gone.
  void Release(uint64_t worker);
  // Notes that a worker that is gone will not come back.
  void Retire(uint64_t worker) { plan_->Retire(worker); }
  // Notes that a checkpoint with this manifest is complete.
  void Saved(const durable::CheckpointManifest& manifest) {
    plan_->Saved(manifest);
  }
  // Takes back the steps of live workers that complete none, unless they wait
  // for something else than each other.
  void TakeBack(bool is_training, absl::Time now);

  // Takes what a claim says.
  //   FailedPrecondition  StepPlan::Check().
  //   InvalidArgument     the worker's data set is another one.
  absl::Status Take(const wire::ClaimStepsRequest& claim, wire::JobPhase phase,
                    absl::Time now);
  // Fills in what the worker may do that makes the claim.
  void Answer(const wire::ClaimStepsRequest& claim, const Look& look,
              absl::Time now, wire::ClaimStepsResponse& response);

  // Brings the job's end forward, once it is known, if that is decided.
  void EndEarly(const Look& look);
  // Follows what has changed about the job.
  void Observe(const Look& look);
  // Returns true if nothing is granted because of what workers may have done
  // that have not come back yet.
  bool AwaitsReturns(const Look& look) const;
  // Returns false while workers say that they have completed more steps than
  // the ps have applied: none are granted then.
  bool ArePushed() const {
    return options_.is_mirrored || applied_.Explain(plan_->completed_grants());
  }

  // Returns a number that changes whenever a claim whose answer was no news may
  // be answered with news, apart from changes of the phase.
  int64_t news() const { return news_ + plan_->news(); }
  const StepPlan& plan() const { return *plan_; }
  const WorkerClaims& claims() const { return claims_; }
  const TrainingEnd& end() const { return end_; }

 private:
  bool MayGrant(const Look& look) const;
  // Returns as many of a worker's completed steps as can be.
  int64_t Believed(int64_t completed) const;
  // Returns true if steps may have been done: a new run has none before its
  // variables are loaded, whatever a worker says.
  bool MayCount(wire::JobPhase phase) const {
    return phase >= wire::TRAINING || options_.is_resumed;
  }
  // Returns true if this worker's reports of completed steps count.
  bool Counts(const wire::Task& worker) const;

  const Options options_;
  const bool is_bounded_;
  const bool is_synchronous_;
  const std::unique_ptr<StepPlan> plan_;
  TrainingEnd end_;
  WorkerClaims claims_;
  AppliedUpdates applied_;
  // The shard of the training set that each live worker is granted first.
  std::map<uint64_t, int> shards_;
  bool ended_early_ = false;
  bool may_grant_ = false;
  int64_t news_ = 0;
};

// Returns true if the answer says something that the worker does not know.
bool IsNews(const wire::ClaimStepsRequest& request,
            const wire::ClaimStepsResponse& response);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_STEP_GRANTS_H_
