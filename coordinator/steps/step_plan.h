#ifndef PARASOL_COORDINATOR_STEPS_STEP_PLAN_H_
#define PARASOL_COORDINATOR_STEPS_STEP_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/steps/told_batches.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// A worker that registers.
struct WorkerArrival {
  // Number of completed steps, as in ClaimStepsRequest.
  int64_t completed = 0;
  // The shard of the training set whose batches it is granted first.
  int shard = 0;
  // The steps that its clock is ahead of `completed` in bounded staleness; none
  // if no chief has told it.
  std::optional<int64_t> clock_lead = std::nullopt;
  // The batches of its steps since a checkpoint, which another chief may have
  // granted.
  ToldBatches told = {};
};

// The distribution of a job's steps over the workers, and the number that are
// done: the part that differs between consistency modes. Pure. Workers are
// identified by their incarnations.
class StepPlan {
 public:
  virtual ~StepPlan() = default;

  // Sets the number of steps at which the job ends. No step is done before it
  // is set.
  virtual void SetEnd(int64_t end_step) = 0;
  virtual std::optional<int64_t> end_step() const = 0;
  // Brings the end forward, once it is set, to the step at which all granted,
  // or begun, steps are done. Workers may be beyond that step already.
  virtual void EndEarly() = 0;

  // Lets no step beyond the first `limit` ones begin, until another limit is
  // set; nullopt: all up to the end. Steps that may have begun are completed:
  // for a limit below them the next possible limit is set.
  virtual void SetLimit(std::optional<int64_t> limit) = 0;

  // Lets no step begin that has none of the first `batches` batches, in a plan
  // that grants batches: the training set grows, and has no more now. nullopt:
  // it has all.
  virtual void SetBatches(std::optional<int64_t> batches) {}

  // Sets the number of batches that each shard of the training set has in an
  // epoch, in a plan that grants batches.
  virtual void SetShards(const std::vector<int64_t>& shard_batches) {}
  // Returns FailedPrecondition if a worker can't have completed, or started,
  // this many steps: its process is wrong, and has to start again; the job goes
  // on. Totals are taken only if this returns OK.
  virtual absl::Status Check(uint64_t worker, int64_t completed,
                             int64_t started) const {
    return absl::OkStatus();
  }
  // Lets a worker take part (again).
  virtual void Enter(uint64_t worker, const WorkerArrival& arrival) = 0;
  // Takes a worker's total. A smaller total than before is a late message and
  // ignored.
  virtual void Report(uint64_t worker, int64_t completed) = 0;
  // Notes that a worker has heard of the assignment of this version, in a plan
  // whose steps are made by several workers.
  virtual void Hears(uint64_t worker, int64_t version) {}
  // Takes the number of steps to which a worker has pushed all its gradients,
  // in a plan whose steps are made by several workers.
  virtual void ReportPushed(uint64_t worker, int64_t pushed) {}
  // Removes a worker that is gone; other workers do its unfinished steps.
  virtual void Release(uint64_t worker) = 0;
  // Notes that a worker that is gone will not come back: it has left, or
  // another process has its place.
  virtual void Retire(uint64_t worker) {}
  // Notes that a checkpoint with this manifest is complete.
  virtual void Saved(const durable::CheckpointManifest& manifest) {}

  // Fills in what the worker that claims may do. Grants it up to `want` further
  // steps; `workers` workers are alive.
  virtual void Answer(const wire::ClaimStepsRequest& claim, int64_t want,
                      int workers, wire::ClaimStepsResponse& response) = 0;
  // Returns the replicas of a worker that takes part in each step, in ascending
  // order; nullopt if it does not, or each worker makes steps of its own.
  virtual std::optional<std::vector<int>> ReplicasOf(uint64_t worker) const {
    return std::nullopt;
  }
  // Gives the assignment of replicas a new version, if `version` is still the
  // present one: its workers could not go on together.
  virtual void RenewAssignment(int64_t version) {}

  // Returns a number that changes whenever a claim whose answer said nothing
  // new may be answered with something new.
  virtual int64_t news() const = 0;

  virtual int64_t global_step() const = 0;
  virtual bool IsComplete() const {
    return end_step() && global_step() >= *end_step();
  }
  // Returns the progress entries of a checkpoint's manifest.
  virtual std::vector<durable::WorkerProgress> Progress() const = 0;

  // Returns the batches that were begun upon and are not completed, for the
  // manifest.
  virtual std::vector<durable::BatchSpan> Unfinished() const { return {}; }

  // Returns true if a live worker holds steps that it has not completed.
  virtual bool HoldsSteps(uint64_t worker) const { return false; }
  // Returns the number of steps by which the clocks of live workers differ, in
  // a plan that bounds it.
  virtual std::optional<int64_t> staleness() const { return std::nullopt; }
  // Returns the number of completed steps that this chief has granted, in a
  // plan that grants steps.
  virtual int64_t completed_grants() const { return 0; }
  // Returns true if a live worker has yet to say which batches of another
  // chief's grants it has in flight, in a plan that grants batches.
  virtual bool MayTell() const { return false; }
  // Returns the number of batches that workers say to have completed although
  // another worker has, in a plan that grants batches.
  virtual int64_t doubled_batches() const { return 0; }
  // Returns the live workers for whose steps another one has to wait, in order.
  virtual std::vector<uint64_t> Awaited() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_STEP_PLAN_H_
