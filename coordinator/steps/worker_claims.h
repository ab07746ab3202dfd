#ifndef PARASOL_COORDINATOR_STEPS_WORKER_CLAIMS_H_
#define PARASOL_COORDINATOR_STEPS_WORKER_CLAIMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/steps/progress_watch.h"
#include "coordinator/steps/step_plan.h"
#include "proto/chief.pb.h"

namespace parasol {

// The last claim of each live worker, and the workers that hold steps and
// complete none: their steps are taken back, and they are set aside until they
// hold none. Pure. Workers are identified by their incarnations.
class WorkerClaims {
 public:
  // `still_named`: time after which a live worker that holds steps and
  // completes none is named among the awaited tasks.
  explicit WorkerClaims(absl::Duration still_named)
      : still_named_(still_named) {}

  // Takes what a claim says of the worker's steps.
  void Take(const wire::ClaimStepsRequest& claim);
  // Notes whether the worker holds steps that it has not completed, now that
  // its claim is answered.
  void Answered(const wire::ClaimStepsRequest& claim, bool holds_steps,
                absl::Time now);
  // Forgets a worker that is gone.
  void Forget(uint64_t worker);

  // Measures progress anew: what the workers wait for is not theirs to mend.
  void StartOver(absl::Time now) { watch_.StartOver(now); }
  // Sets workers aside that have completed none of their steps for `limit`, and
  // returns them.
  std::vector<uint64_t> SetAside(absl::Duration limit, absl::Time now);
  // Ends this for a worker that registers.
  void Welcome(uint64_t worker) { set_aside_.erase(worker); }
  // Ends this, and returns true, if the claim says that the worker holds no
  // steps any more. Others, which want its steps, come first for a moment.
  bool Resume(const wire::ClaimStepsRequest& claim, absl::Time now);

  // Returns true if the worker's last claim had no step in flight.
  bool IsIdle(uint64_t worker) const { return idle_.contains(worker); }
  // Returns the number of such workers.
  int num_idle() const { return static_cast<int>(idle_.size()); }
  // Returns true if a worker's last claim had completed fewer steps.
  bool IsAnyBefore(int64_t step) const;
  // Returns true if a worker has granted steps that it has not completed, as
  // far as is known.
  bool HoldSteps(const StepPlan& plan) const;
  // Returns the workers that have held steps for that time or longer and
  // completed none, and those that are set aside.
  std::vector<uint64_t> Still(absl::Time now) const;

 private:
  const absl::Duration still_named_;
  ProgressWatch watch_;
  // The times since which workers are set aside.
  std::map<uint64_t, absl::Time> set_aside_;
  // The steps that each worker's last claim had completed.
  std::map<uint64_t, int64_t> completed_;
  std::set<uint64_t> idle_;
};

// Value of `still_named` where a step takes seconds at most.
inline constexpr absl::Duration kStillNamed = absl::Seconds(30);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_WORKER_CLAIMS_H_
