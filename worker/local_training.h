#ifndef PARASOL_WORKER_LOCAL_TRAINING_H_
#define PARASOL_WORKER_LOCAL_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/checkpoint_schedule.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/checkpoint/run_decisions.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/progress/training_journal.h"
#include "cluster/progress/training_progress.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "storage/event_file.h"
#include "worker/local/local_status.h"
#include "worker/local/table/device_tables.h"
#include "worker/local_trainer.h"
#include "worker/training_report.h"

namespace parasol {

// Trains a job in one process: the worker's mode when TF_CONFIG is not set,
// with one replica or, as the job's strategy says, with several in step. The
// training loop, the optimizers, the tables, the evaluation, and when
// checkpoints are written and which of them are resumed from are those of a
// cluster. On a CUDA device the variables stay in its memory and are updated
// there; mirrored on several, in the memory of each.
class LocalTraining {
 public:
  struct Options {
    LocalTrainer::Options trainer;  // with the job
    // Time for which the first and the last checkpoint are tried again, and a
    // directory that is full at the start.
    absl::Duration checkpoint_timeout = absl::Minutes(10);
    // Told how the training goes; null: nobody asks. Must outlive the training.
    LocalStatus* status = nullptr;
  };

  LocalTraining(Options options, Clock& clock, MetricsRegistry& metrics);

  // Resumes from the newest intact checkpoint of the job's directory, trains to
  // the job's end, evaluates when the job says so and at the end, and logs the
  // results. A new run's initial values
  // are a checkpoint, too. A checkpoint that fails while training is tried
  // again later; for the first and the last one, training waits.
  //   Cancelled           Stop() was called; a checkpoint of the last step is
  //                       written.
  //   FailedPrecondition  the checkpoint directory has another owner now.
  //   InvalidArgument     another process owns the directory; the message names
  //                       it.
  //   EndWithoutCheckpoint()  the first or the last checkpoint could not be
  //                       written within `checkpoint_timeout`, or before a
  //                       stop.
  //   any other           as in a cluster.
  absl::Status Run();

  // Ends Run() after the step that is being computed. May be called from any
  // thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Resume();
  // Makes one attempt at Resume().
  absl::Status TryResume();
  // Has the trainer load the checkpoint of the present step, or initial values.
  absl::Status Load();
  absl::Status Train();
  // Trains until a checkpoint is due, the job's last step `end`, or Stop().
  absl::Status TrainUntilDue(int64_t end);
  // Tells the status from which checkpoint the run goes on.
  void NoteResumed();
  // Opens the record of the training, if it can be written.
  void OpenJournal();
  // Takes what the reporter has, and writes down what is due at this step.
  void NoteProgress(int64_t step, int64_t end, TrainingReporter& reporter,
                    bool is_end);
  double LearningRateAt(int64_t step) const;
  // Makes one attempt, and logs and notes how it went.
  absl::Status TryCheckpoint(bool final);
  // Writes a checkpoint that must be there before anything else happens.
  absl::Status WriteNeededCheckpoint(bool final);
  // Returns true if the checkpoint that is written next is to be evaluated.
  bool IsEvaluationDue() const;
  // Returns the history of the checkpoints that this process writes.
  RunHistory History() const;
  // Writes the checkpoint that is due, if one is, and evaluates it.
  absl::Status WriteAndEvaluateWhatIsDue();
  // Evaluates the values as they are, and goes by the result. Does nothing if
  // the job has no eval data set.
  absl::Status Evaluate(bool final);
  // Reads what the run's evaluations have decided before it was resumed.
  absl::Status ReadDecisions();
  // Goes by an evaluation of the checkpoint that was just written.
  absl::Status Decide(const Evaluation& evaluation);
  // Returns the last step, and sets steps_per_epoch_.
  absl::StatusOr<int64_t> EndStep();
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t ExamplesOfAStep() const {
    return trainer_->num_replicas() * int64_t{job().train().batch_size()};
  }
  const job::Job& job() const { return options_.trainer.job; }
  LocalStatus& status() {
    return options_.status == nullptr ? unseen_ : *options_.status;
  }

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  LocalStatus unseen_;  // told if Options::status is null
  int64_t step_ = 0;
  std::unique_ptr<LocalTrainer> trainer_;
  CheckpointContents contents_;
  // Set by Resume().
  std::optional<CheckpointStore> store_;
  std::unique_ptr<DirectoryOwnership> ownership_;
  ResumedRun run_;
  std::set<int64_t> damaged_;  // steps of checkpoints that were passed over
  std::optional<CheckpointSchedule> schedule_;
  std::optional<CheckpointSchedule> evaluation_times_;
  std::vector<Evaluation> evaluations_;  // ascending by their steps
  std::optional<RunDecisions> decisions_;
  // The training since the last line of the log.
  TrainingReport since_line_;
  DeviceTables::CacheUse cache_since_line_;
  double loss_sum_ = 0;                   // the sum over all examples
  std::vector<double> output_loss_sums_;  // the same of named outputs
  int64_t examples_ = 0;
  int64_t steps_per_epoch_ = 0;
  std::unique_ptr<TrainingJournal> journal_;  // null: it can't be written
  std::optional<TrainingProgress> progress_;
  std::optional<EventFile> eval_events_;  // nullopt: the job wants none
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_TRAINING_H_
