#ifndef PARASOL_COORDINATOR_STEPS_REPLICA_PLAN_H_
#define PARASOL_COORDINATOR_STEPS_REPLICA_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/steps/replica_assignment.h"
#include "coordinator/steps/step_plan.h"

namespace parasol {

// The plan of synchronous training: all workers do every step together, each
// computing the gradients of its replicas. A worker needs no grant. It reports
// the cluster's number of steps, and the largest report counts. Steps that
// complete without a report, because their workers are gone or the chief is
// away, are known from the next report; in a new run from the next claim, not
// from a registration.
class ReplicaPlan : public StepPlan {
 public:
  // `first_version` is ReplicaAssignment's. `resumed_step` is the step of the
  // checkpoint that the run is resumed from. It is nullopt in a new run: there
  // a worker that enters with completed steps did them for another run, and its
  // reports are ignored. `earlier_end` is the step up to which an earlier chief
  // may have let workers go, if its job had another end. `mirrored_devices` is
  // the number of devices of each worker, which have replicas of their own,
  // where workers sum gradients among themselves and none can complete a step
  // alone; otherwise 0.
  ReplicaPlan(int total_replicas, int64_t first_version,
              std::optional<int64_t> resumed_step, int64_t earlier_end = 0,
              int mirrored_devices = 0)
      : assignment_(total_replicas, first_version, mirrored_devices),
        is_mirrored_(mirrored_devices > 0),
        is_new_run_(!resumed_step),
        earlier_end_(earlier_end),
        global_step_(resumed_step.value_or(0)) {}

  void SetEnd(int64_t end_step) override { end_step_ = end_step; }
  // Ends the job one step after the last step that any worker has begun, since
  // a worker may not have heard of the early end, or may have done more than it
  // told before it was lost. Workers push that step to all shards, so that no
  // shard lacks it, and the plan is complete when all workers have heard of the
  // end.
  void EndEarly() override;
  void SetLimit(std::optional<int64_t> limit) override;
  bool IsComplete() const override;
  std::optional<int64_t> end_step() const override { return end_step_; }

  absl::Status Check(uint64_t worker, int64_t completed,
                     int64_t started) const override;
  void Enter(uint64_t worker, const WorkerArrival& arrival) override;
  void Report(uint64_t worker, int64_t completed) override;
  void Hears(uint64_t worker, int64_t version) override;
  void ReportPushed(uint64_t worker, int64_t pushed) override;
  void Release(uint64_t worker) override;
  void Answer(const wire::ClaimStepsRequest& claim, int64_t want, int workers,
              wire::ClaimStepsResponse& response) override;
  std::optional<std::vector<int>> ReplicasOf(uint64_t worker) const override;
  void RenewAssignment(int64_t version) override;
  int64_t news() const override {
    return assignment_.version() + (end_step_ ? 1 : 0) + (full_end_ ? 1 : 0) +
           limits_;
  }

  int64_t global_step() const override { return global_step_; }
  std::vector<durable::WorkerProgress> Progress() const override { return {}; }
  // Returns the workers with replicas that have not pushed to the current step,
  // once another worker has said kPatience times that it waits: a single report
  // may be older than the step.
  std::vector<uint64_t> Awaited() const override;

 private:
  // Number of reports in one step by which a worker is believed to wait. It
  // makes ten in a second.
  static constexpr int kPatience = 10;

  struct Pushed {
    int64_t steps = 0;
    // The step that the worker has last said it waits in, and how often.
    int64_t waits_in = -1;
    int waits = 0;
    // The newest version of the assignment that the worker has heard of.
    int64_t version = 0;
  };

  // Ends early, at `step` or where the cluster is.
  void EndAt(int64_t step);
  // Returns the number of steps that workers are told to do: up to the end, or
  // the limit. A step that one worker has begun is made by all.
  int64_t ToldEnd() const;
  // Moves an early end if a worker, which has pushed to `pushed` steps, is
  // beyond it, or if nobody has pushed it.
  void EndAfter(int64_t pushed);
  bool HasHeard(const Pushed& worker) const {
    return is_mirrored_ || worker.version >= end_version_;
  }

  ReplicaAssignment assignment_;
  const bool is_mirrored_;
  const bool is_new_run_;
  int64_t earlier_end_;
  // All worker processes of the run, and the ones that had trained another run
  // before.
  std::set<uint64_t> known_;
  std::set<uint64_t> strangers_;
  std::optional<int64_t> end_step_;
  // The job's own end, if the end was brought forward, and the first version of
  // the assignment whose answers tell the early end.
  std::optional<int64_t> full_end_;
  int64_t end_version_ = 0;
  std::optional<int64_t> limit_;
  int64_t limits_ = 0;  // number of changes of what ToldEnd() says
  int64_t global_step_;
  std::map<uint64_t, Pushed> pushed_;  // key: worker, of those that take part
  int64_t begun_ = 0;  // largest number of steps that one of them has pushed to
  // The step in which a worker has last waited kPatience reports long.
  int64_t late_step_ = -1;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_REPLICA_PLAN_H_
