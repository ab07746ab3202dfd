#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATION_DECISIONS_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATION_DECISIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The decisions of a run's evaluations about its training.
struct EvaluationDecisions {
  // The reason for which end.early_stopping ends the job, as one line; nullopt
  // if it does not.
  std::optional<std::string> stop;
  // Steps of the evaluations by checkpoint.keep_best, the best one first, and
  // of equal ones the earlier one. Empty without keep_best.
  std::vector<int64_t> best_first;
  // The learning rate as optimizer.reduce_on_plateau has reduced it; nullopt if
  // it has not.
  std::optional<double> learning_rate;
};

// Returns true if the job asks for any such decision: its evaluations are then
// read while it trains.
bool HasEvaluationDecisions(const job::Job& job);

// Returns true if training goes by its evaluations: for such a decision, or as
// it waits for them (evaluation.max_lag).
bool GoesByEvaluations(const job::Job& job);

// Returns true if a checkpoint with this manifest is to be evaluated: each one,
// unless the job has times for evaluations; then those that were marked, and
// the job's last one.
bool IsToBeEvaluated(const durable::CheckpointManifest& manifest);

// Returns the decisions after `evaluations`, which one run has had, in
// ascending order of their steps. `job` has its defaults filled in and was
// validated. Counts as Keras's EarlyStopping and ReduceLROnPlateau do, an
// evaluation being an epoch. The evaluation of step 0, before any training, and
// evaluations that lack the metric count for nothing; a value that is NaN is no
// improvement. Pure.
EvaluationDecisions DecideByEvaluations(
    const job::Job& job, absl::Span<const Evaluation> evaluations);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATION_DECISIONS_H_
