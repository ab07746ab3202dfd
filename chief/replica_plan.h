#ifndef PARASOL_CHIEF_REPLICA_PLAN_H_
#define PARASOL_CHIEF_REPLICA_PLAN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "chief/replica_assignment.h"
#include "chief/steps/step_plan.h"

namespace parasol {

// The plan of synchronous training: all workers do every step together, each
// computing the gradients of its replicas. A worker needs no grant. It reports
// the cluster's number of steps, and the largest report counts. Steps that
// complete without a report, because their workers are gone or the chief is
// away, are known from the next report.
class ReplicaPlan : public StepPlan {
 public:
  // `first_version` is ReplicaAssignment's. `resumed_step` is the step of the
  // checkpoint that the run is resumed from. It is nullopt in a new run: there
  // a worker that enters with completed steps did them for another run, and its
  // reports are ignored.
  ReplicaPlan(int total_replicas, int64_t first_version,
              std::optional<int64_t> resumed_step)
      : assignment_(total_replicas, first_version),
        is_new_run_(!resumed_step),
        global_step_(resumed_step.value_or(0)) {}

  void SetEnd(int64_t end_step) override { end_step_ = end_step; }
  std::optional<int64_t> end_step() const override { return end_step_; }

  absl::Status Check(uint64_t worker, int64_t completed,
                     int64_t started) const override;
  void Enter(uint64_t worker, int64_t completed) override;
  void Report(uint64_t worker, int64_t completed) override;
  void Release(uint64_t worker) override;
  void Answer(const wire::ClaimStepsRequest& claim, int64_t want, int workers,
              wire::ClaimStepsResponse& response) override;
  int64_t news() const override {
    return assignment_.version() + (end_step_ ? 1 : 0);
  }

  int64_t global_step() const override { return global_step_; }
  std::vector<durable::WorkerProgress> Progress() const override { return {}; }
  // Returns nothing: only the shards know which workers have not pushed.
  std::vector<uint64_t> Awaited() const override { return {}; }

  // Returns a step ahead of the last report by twice the distance of the last
  // two reports, so that no shard is past it: the workers go on meanwhile. Each
  // miss doubles the distance again.
  std::optional<int64_t> SnapshotStep(int workers) const override;
  void SnapshotMissed() override;

 private:
  static constexpr int64_t kMaxMargin = 1 << 16;

  ReplicaAssignment assignment_;
  const bool is_new_run_;
  // All worker processes of the run, and those of them that had trained another
  // run before.
  std::set<uint64_t> known_;
  std::set<uint64_t> strangers_;
  std::optional<int64_t> end_step_;
  int64_t global_step_;
  // Number of steps that the last report was ahead of the one before it.
  int64_t last_advance_ = 0;
  // The factor of SnapshotStep()'s distance.
  int64_t margin_ = 1;
  // Number of steps, known from missed snapshots, that are complete but not
  // reported.
  int64_t unheard_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_REPLICA_PLAN_H_
