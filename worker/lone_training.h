#ifndef PARASOL_WORKER_LONE_TRAINING_H_
#define PARASOL_WORKER_LONE_TRAINING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "coordinator/order.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "worker/lone_chief.h"
#include "worker/lone_record.h"
#include "worker/lone_trainer.h"
#include "worker/training_report.h"

namespace parasol {

class LoneStatus;
class TrainingHooks;

// Trains a job in one process: the worker's mode when TF_CONFIG is not set,
// with one replica or, as the job's strategy says, with several in step. What
// is decided, LoneChief decides; what is computed, LoneTrainer computes; this
// class carries the orders of the one to the other, and evaluates.
class LoneTraining {
 public:
  struct Options {
    LoneTrainer::Options trainer;
    // Time for which the first and the last checkpoint are tried again, and a
    // directory that is full at the start.
    absl::Duration checkpoint_timeout = absl::Minutes(10);
    // Told of the training; null: nothing is. Must outlive this object.
    TrainingHooks* hooks = nullptr;
    // Shows the training while this object is there; null: nothing does. Must
    // outlive it.
    LoneStatus* shown = nullptr;
  };

  LoneTraining(Options options, Clock& clock, MetricsRegistry& metrics);
  ~LoneTraining();

  // Resumes from the newest intact checkpoint of the job's directory, trains to
  // the job's end, evaluates when the job says so and at the end, and logs the
  // results. A new run's initial values are a checkpoint, too. A checkpoint
  // that fails while training is tried again later; for the first and the last
  // one, training waits.
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
  void Stop() { stopping_ = true; }

  // Returns how the training goes, in the words of a chief. May be called from
  // any thread.
  wire::JobStatus Status() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The steps of the training, as the chief grants them.
  class Steps;

  absl::Status Open() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Train();
  // Trains until the chief has an order, or has no step to grant.
  absl::Status TrainUntilOrder() ABSL_LOCKS_EXCLUDED(mu_);
  // Has those who look on ask this object.
  void Show();
  // Takes the reporter of the steps that go on; null: none do.
  void SetSteps(const TrainingReporter* reporter) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CarryOut(const LoadOrder& order);
  // Writes a checkpoint, and evaluates it if that is due.
  absl::Status CarryOut(const CheckpointOrder& order);
  // Returns true if the job says that the checkpoint is to be evaluated.
  bool IsEvaluationDue(const durable::CheckpointManifest& manifest) const;
  // Tells hooks of epochs and checkpoints, between two steps. `checkpoint`: the
  // path of one that was written just now.
  void LookForHooks(const std::string& checkpoint = "");
  // Tells the chief what the training has done, and writes down what is due.
  void Report(TrainingReporter& reporter, bool is_end = false);
  // Evaluates the values as they are, and goes by the result. Does nothing if
  // the job has no eval data set.
  absl::Status Evaluate(bool final);
  // Adds an evaluation to the run's, which the chief goes by.
  void Keep(const Evaluation& evaluation);
  const job::Job& job() const { return options_.trainer.job; }

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<LoneTrainer> trainer_;
  std::unique_ptr<LoneChief> chief_;
  std::unique_ptr<LoneRecord> record_;  // null: the run was complete
  int64_t step_ = 0;                    // number of steps that are done
  // The run's evaluations, in ascending order of their steps.
  std::vector<Evaluation> evaluations_;
  absl::Time reported_ = absl::InfinitePast();

  mutable absl::Mutex mu_;
  // The thing that the start waits for.
  std::string trouble_ ABSL_GUARDED_BY(mu_);
  const LoneChief* shown_ ABSL_GUARDED_BY(mu_) = nullptr;  // `chief_`
  // The reporter of the steps that go on; null: none do.
  const TrainingReporter* steps_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_TRAINING_H_
