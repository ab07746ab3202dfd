#ifndef PARASOL_COORDINATOR_STEPS_RUN_EVALUATIONS_H_
#define PARASOL_COORDINATOR_STEPS_RUN_EVALUATIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/checkpoint_schedule.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/run_decisions.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "coordinator/steps/evaluation_lag.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The evaluations of a run: when checkpoints for them are due, how far they are
// behind, what they have decided, and which checkpoints are kept for them.
// Pure.
class RunEvaluations {
 public:
  struct Options {
    // The checkpoint that the run is resumed from, and the evaluations up to
    // it, in ascending order of their steps.
    std::optional<durable::CheckpointManifest> resumed = std::nullopt;
    std::vector<Evaluation> evaluations = {};
    // True if the cluster has a place for an evaluator.
    bool has_place = false;
    // The longest wait in which no result comes.
    absl::Duration limit;
  };

  RunEvaluations(const job::Job& job, const Options& options, absl::Time now);

  // Takes all evaluations that there are, in ascending order of their steps.
  // Returns lines for the log about what they have changed.
  std::vector<std::string> Update(absl::Span<const Evaluation> evaluations);
  // Notes how far they are behind.
  void Observe(const EvaluationLag::Look& look);
  // Returns warnings for the log that have come up since the last call.
  std::vector<std::string> TakeWarnings() {
    return std::exchange(warnings_, {});
  }

  // Returns true if a checkpoint of this step is to be evaluated.
  bool IsDue(int64_t step, absl::Time now) const {
    return times_.IsDue(step, now);
  }
  // Returns the step from which a checkpoint that is ordered at `step` is to be
  // evaluated: also if it is cut later, or is of a step whose first checkpoint
  // has not been evaluated yet. nullopt: at no step.
  std::optional<int64_t> DueFrom(int64_t step, absl::Time now) const;
  // Notes a checkpoint that is to be evaluated.
  void Written(int64_t step, absl::Time now);
  // Returns the checkpoints that keep_best and max_lag have a use for now.
  KeptCheckpoints Kept() const;

  const RunDecisions& decisions() const { return decisions_; }
  const EvaluationLag& lag() const { return lag_; }

 private:
  const job::EvaluationPolicy policy_;
  const bool keeps_best_;
  const bool has_place_;
  // The times of the checkpoints that are to be evaluated.
  CheckpointSchedule times_;
  RunDecisions decisions_;
  EvaluationLag lag_;
  std::vector<std::string> warnings_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_RUN_EVALUATIONS_H_
