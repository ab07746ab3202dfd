#ifndef PARASOL_EVALUATOR_JOB_EVALUATION_H_
#define PARASOL_EVALUATOR_JOB_EVALUATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/chief_session.h"
#include "evaluator/checkpoint_follower.h"
#include "evaluator/evaluated_model.h"
#include "evaluator/evaluation_log.h"
#include "evaluator/evaluator_metrics.h"
#include "evaluator/job_watch.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// Evaluates the checkpoints of one job as they appear, until the job has ended
// and its last one is evaluated. What it finds is in the log, in the metrics
// and in the checkpoint directory's evaluations.jsonl.
//
// A checkpoint that is damaged is reported, counted and passed over.
class JobEvaluation {
 public:
  struct Options {
    EvaluatedModel::Options model;
    // Empty: the one that the chief names.
    std::string checkpoint_directory;
    absl::Duration poll_interval = absl::Seconds(1);
    // How long after the job's end its last checkpoint may be out of sight:
    // network file systems show new names late.
    absl::Duration final_checkpoint_timeout = absl::Minutes(1);
  };

  // Watches the job from now on. `clock` and `registry` outlive it.
  JobEvaluation(const Options& options, std::unique_ptr<ChiefSession> session,
                Clock& clock, MetricsRegistry& registry);

  // Blocks until the end; called once.
  //   OK                  the job is complete, and its last checkpoint was
  //                       evaluated.
  //   DataLoss            its last checkpoint is damaged.
  //   NotFound            its last checkpoint is not to be seen.
  //   FailedPrecondition  the job has failed.
  //   Unavailable         the chief is lost before the job's end.
  //   Cancelled           stopped.
  //   any other           the eval data or the device is of no use.
  absl::Status Run();

  // May be called twice, from any thread.
  void Stop() { watch_.Stop(); }

 private:
  // Ascending.
  using Listing = std::vector<ListedCheckpoint>;

  absl::Status AwaitJobEnd();
  absl::Status Follow(EvaluatedModel& model);
  absl::StatusOr<Listing> List() const;
  absl::Status UpdateListing();
  absl::Status EvaluateNewOnes(EvaluatedModel& model);
  absl::StatusOr<Evaluation> Evaluate(
      EvaluatedModel& model, const durable::CheckpointManifest& manifest,
      absl::Time start);
  void Publish(const Evaluation& evaluation);
  void ReportDamaged(const ListedCheckpoint& checkpoint,
                     const absl::Status& damage);
  bool IsLastEvaluated(const absl::Status& end) const;
  absl::Status ResultAtEnd() const;
  absl::Status LastIsOutOfSight() const;

  const Options options_;
  const std::unique_ptr<ChiefSession> session_;
  const CheckpointStore store_;
  Clock& clock_;
  EvaluatorMetrics metrics_;
  CheckpointFollower follower_;
  Listing listing_;  // the newest one that could be read
  std::optional<ListedCheckpoint> newest_at_start_;
  JobWatch watch_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_JOB_EVALUATION_H_
