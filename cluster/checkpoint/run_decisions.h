#ifndef PARASOL_CLUSTER_CHECKPOINT_RUN_DECISIONS_H_
#define PARASOL_CLUSTER_CHECKPOINT_RUN_DECISIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The decisions of evaluations about a run while one process has trained it:
// what was decided once stays so. Pure.
class RunDecisions {
 public:
  // `resumed` is the checkpoint that the run is resumed from, and `evaluations`
  // are those up to it. A rate that was reduced when the checkpoint was written
  // stays so, unless the job has another rate now.
  RunDecisions(const job::Job& job,
               const std::optional<durable::CheckpointManifest>& resumed,
               absl::Span<const Evaluation> evaluations);

  // Takes all evaluations that there are now, in ascending order of their
  // steps. Returns lines for the log about what they have changed.
  std::vector<std::string> Update(absl::Span<const Evaluation> evaluations);

  // Return what EvaluationDecisions has under these names.
  const std::optional<std::string>& stop() const { return decisions_.stop; }
  const std::vector<int64_t>& best_first() const {
    return decisions_.best_first;
  }
  // Returns the step of the newest evaluation; -1 if there is none.
  int64_t evaluated_to() const { return evaluated_to_; }
  std::optional<double> learning_rate() const;

 private:
  const job::Job job_;
  std::optional<double> saved_rate_;
  EvaluationDecisions decisions_;
  int64_t evaluated_to_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_RUN_DECISIONS_H_
