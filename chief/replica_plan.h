#ifndef PARASOL_CHIEF_REPLICA_PLAN_H_
#define PARASOL_CHIEF_REPLICA_PLAN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "chief/replica_assignment.h"
#include "chief/step_plan.h"

namespace parasol {

// All workers do every step together, each the gradients of its replicas:
// synchronous training. A worker needs no grant; what it reports is the
// cluster's number of steps, and the largest report counts. Steps that are done
// unheard, by workers that are gone or while the chief is away, are heard of
// from the next report.
class ReplicaPlan : public StepPlan {
 public:
  // `first_version` as ReplicaAssignment's. `resumed_step`: of the checkpoint
  // that the run is resumed from. A new run has none, and there the number of
  // steps that a worker enters with belongs to another run: it is not heard.
  ReplicaPlan(int total_replicas, int64_t first_version,
              std::optional<int64_t> resumed_step)
      : assignment_(total_replicas, first_version),
        is_new_run_(!resumed_step),
        global_step_(resumed_step.value_or(0)) {}

  void SetEnd(int64_t end_step) override { end_step_ = end_step; }
  std::optional<int64_t> end_step() const override { return end_step_; }

  void Enter(uint64_t worker, int64_t completed) override;
  void Report(uint64_t worker, int64_t completed) override;
  void Release(uint64_t worker) override;
  void Answer(uint64_t worker, int64_t want, int workers,
              wire::ClaimStepsResponse& response) override;

  int64_t global_step() const override { return global_step_; }
  std::vector<durable::WorkerProgress> Progress() const override { return {}; }
  // Who has not pushed is known at the shards only.
  std::vector<uint64_t> Awaited() const override { return {}; }

  // Ahead of the last report by twice what that one was ahead of the one
  // before, so that no shard is past it: the workers go on meanwhile. Twice as
  // far again after each miss.
  std::optional<int64_t> CutStep(int workers) const override;
  void CutMissed() override;

 private:
  static constexpr int64_t kMaxMargin = 1 << 16;

  ReplicaAssignment assignment_;
  const bool is_new_run_;
  // Every worker process of the run, and those that trained another one before.
  std::set<uint64_t> known_;
  std::set<uint64_t> strangers_;
  std::optional<int64_t> end_step_;
  int64_t global_step_;
  // By how many steps the last report was news.
  int64_t last_advance_ = 0;
  // What CutStep()'s distance is multiplied by.
  int64_t margin_ = 1;
  // Steps that had been done unheard when the last worker went.
  int64_t unheard_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_REPLICA_PLAN_H_
