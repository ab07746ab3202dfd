#ifndef PARASOL_EVALUATOR_JOB_EVALUATION_H_
#define PARASOL_EVALUATOR_JOB_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/model/checkpoint_follower.h"
#include "cluster/checkpoint/model/evaluated_model.h"
#include "cluster/checkpoint/model/known_manifests.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/client/chief_session.h"
#include "cluster/inspection/trace_recorder.h"
#include "evaluator/evaluator_metrics.h"
#include "evaluator/job_watch.h"
#include "storage/checkpoint_store.h"
#include "storage/event_file.h"

namespace parasol {

class TrainingHooks;

// Evaluates the checkpoints of one job as they appear, until the job has ended
// and its last checkpoint is evaluated; if the job has times for evaluations,
// those that the chief has marked, and the last one. Writes the results to the
// log, to the metrics, and to the checkpoint directory's evaluations.jsonl and
// event file.
//
// A damaged checkpoint is reported, counted and skipped.
class JobEvaluation {
 public:
  struct Options {
    EvaluatedModel::Options model;
    // The job's checkpoint directory. Empty: the one that the chief names.
    std::string checkpoint_directory;
    // Told of each evaluation; null: nothing is. Must outlive this object.
    TrainingHooks* hooks = nullptr;
    absl::Duration poll_interval = absl::Seconds(1);
    // Longest wait for a checkpoint directory that is not here. The chief makes
    // it before any task registers, but network file systems show new names
    // late.
    absl::Duration directory_timeout = absl::Minutes(1);
    // Longest time after the job's end for its last checkpoint to become
    // visible: network file systems show new names late.
    absl::Duration final_checkpoint_timeout = absl::Minutes(1);
    // Shows each evaluation; must outlive this object. Null: nowhere.
    TraceRecorder* trace = nullptr;
  };

  // Watches the job from now on. `clock` and `registry` must outlive this
  // object.
  JobEvaluation(const Options& options, std::unique_ptr<ChiefSession> session,
                Clock& clock, MetricsRegistry& registry);

  // Blocks until the job and the evaluations have ended. May be called once.
  //   OK                  the job is complete, and its last checkpoint was
  //                       evaluated.
  //   DataLoss            its last checkpoint is damaged.
  //   NotFound            the checkpoint directory, or the job's last
  //                       checkpoint, did not become visible.
  //   FailedPrecondition  the job has failed.
  //   Unavailable         the chief was lost before the job's end.
  //   Cancelled           Stop() was called.
  //   any other           the eval data or the device can't be used.
  absl::Status Run();

  // Ends Run() with Cancelled. May be called twice, from any thread.
  void Stop() { watch_.Stop(); }

 private:
  // The checkpoints of the directory, in ascending order.
  using Listing = std::vector<ListedCheckpoint>;

  // Returns the time between two looks at the directory.
  absl::Duration PollInterval() const;
  absl::Status AwaitJobEnd();
  // Blocks until the checkpoint directory is there or the job has ended. Logs
  // the directory while it waits.
  //   NotFound  it is not there after `directory_timeout`.
  absl::Status AwaitDirectory();
  // Logs, once per minute, that the first checkpoint is awaited.
  void LogAwaited();
  absl::Status Follow(EvaluatedModel& model);
  void PassOverEvaluated();
  absl::Status UpdateListing();
  absl::Status EvaluateNewOnes(EvaluatedModel& model);
  absl::StatusOr<Evaluation> Evaluate(
      EvaluatedModel& model, const durable::CheckpointManifest& manifest,
      absl::Time start);
  // Loads a checkpoint into the model, with its histograms if the job wants
  // them. Fails as EvaluatedModel::Load() does.
  absl::StatusOr<durable::CheckpointManifest> Load(EvaluatedModel& model,
                                                   int64_t step);
  void Publish(const Evaluation& evaluation);
  void Trace(const char* name, int64_t step, absl::Time begin) const;
  // Brings the file BEST up to date by the evaluations of history_.
  absl::Status NameBest() const;
  void ReportDamaged(const ListedCheckpoint& checkpoint,
                     const absl::Status& damage);
  bool IsLastEvaluated(const absl::Status& end) const;
  absl::Status ResultAtEnd() const;
  absl::Status LastNotVisibleError() const;

  const Options options_;
  const std::unique_ptr<ChiefSession> session_;
  const CheckpointStore store_;
  Clock& clock_;
  EvaluatorMetrics metrics_;
  std::optional<EventFile> events_;  // nullopt: the job wants none
  // Histograms of the variables and of rows that were loaded last.
  EventFile::Histograms histograms_;
  KnownManifests manifests_;
  CheckpointFollower follower_;
  Listing listing_;  // newest listing that could be read
  std::optional<ListedCheckpoint> newest_at_start_;
  // The history of the newest owner's checkpoints that were evaluated, and the
  // run.
  std::optional<RunHistory> history_;
  std::string run_id_;
  absl::Time next_awaited_log_ = absl::InfinitePast();
  JobWatch watch_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_JOB_EVALUATION_H_
