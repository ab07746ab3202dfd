#ifndef PARASOL_CHIEF_STEP_PLAN_H_
#define PARASOL_CHIEF_STEP_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// Who of the workers does what of a job's steps, and how many are done: what
// differs from one consistency mode to another. Pure. Workers are known by
// their incarnations.
class StepPlan {
 public:
  virtual ~StepPlan() = default;

  // The number of steps at which the job ends. Until it is known, none is done.
  virtual void SetEnd(int64_t end_step) = 0;
  virtual std::optional<int64_t> end_step() const = 0;

  // The worker (again) takes part, `completed` as in ClaimStepsRequest.
  virtual void Enter(uint64_t worker, int64_t completed) = 0;
  // Smaller totals than before are late messages and ignored.
  virtual void Report(uint64_t worker, int64_t completed) = 0;
  // It is gone; what it had left undone is for others.
  virtual void Release(uint64_t worker) = 0;

  // Fills in what the worker that asks may do. `want` further steps; `workers`
  // are alive.
  virtual void Answer(uint64_t worker, int64_t want, int workers,
                      wire::ClaimStepsResponse& response) = 0;

  virtual int64_t global_step() const = 0;
  bool IsComplete() const { return end_step() && global_step() >= *end_step(); }
  // For a checkpoint's manifest.
  virtual std::vector<durable::WorkerProgress> Progress() const = 0;

  // Live workers for whose steps another one has to wait, in order.
  virtual std::vector<uint64_t> Awaited() const = 0;

  // The number of updates after which all shards are to be cut for a
  // checkpoint; nothing: each is cut as it comes. `workers` are alive.
  virtual std::optional<int64_t> CutStep(int workers) const = 0;
  // A shard had had more updates than CutStep() said: ask again.
  virtual void CutMissed() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_STEP_PLAN_H_
