#ifndef PARASOL_WORKER_TRAINING_LOOP_H_
#define PARASOL_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/parameter_client.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/step_source.h"
#include "worker/training_record.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker's loop: take a step, pull, compute, push. A step's values, and the
// rows of sparse tables that its batch reads, are pulled after it was taken: by
// then others' gradients that the chief had it wait for (bounded staleness)
// have been applied. With `overlap` a step that can be had at once is taken,
// and its values and rows are pulled, while the one before computes, whose
// gradients are pushed meanwhile: a step sees the worker's own gradients up to
// the last but one; with `may_reuse_values` perhaps to the last but two. For
// one thread.
class TrainingLoop {
 public:
  struct Options {
    bool overlap = true;
    // A step whose values are not there when it could compute takes those of
    // the step before, but no two steps in a row: what they wait for would keep
    // the worker from computing. Not where a step must see what was pushed
    // before it was taken (bounded staleness). Rows are always waited for.
    bool may_reuse_values = false;
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
    // What is random in a pass: see PassSeed(). Passes are numbered from
    // `first_pass`.
    uint64_t seed = 0;
    int worker = 0;
    int64_t first_pass = 0;
    // Of the input's skipped_records(), those that the metrics have already.
    int64_t counted_corrupt_records = 0;
  };

  // All must outlive the loop. The model's variables and tables are the
  // client's, in the same order. After an error the client has been stopped.
  TrainingLoop(const Options& options, Model& model, InputPipeline& input,
               ParameterClient& parameters, StepSource& steps, Clock& clock,
               WorkerMetrics& metrics, TrainingReporter& reporter);

  // Trains until there are no more steps; every gradient has then been
  // acknowledged. Errors are those of the input, the model, the parameters and
  // the steps, and
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status Run();

 private:
  using Pending = std::unique_ptr<ParameterClient::Pending>;
  // One step's gradients on their way to the shards.
  using Pushes = std::vector<Pending>;

  absl::Status RunSteps();
  // The next step's batch, with its pulls on their way; nullptr: there are no
  // more steps.
  absl::StatusOr<StagedBatch*> TakeStep();
  absl::StatusOr<StagedBatch*> RunStep(StagedBatch& batch);
  absl::StatusOr<StagedBatch*> StageNext();
  void PullVariables();
  void PullRows(const StagedBatch& batch);
  absl::Status FinishPulls();
  absl::Status FinishValues();
  // Leaves the gradients' pushes in `pushes_`.
  absl::Status Compute(StagedBatch& batch);
  absl::Status FinishPushes(Pushes& pushes);
  void Abandon();

  const Options options_;
  Model& model_;
  InputPipeline& input_;
  ParameterClient& parameters_;
  StepSource& steps_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingRecord record_;

  // The batch that computes and the one that is being pulled for.
  std::unique_ptr<StagedBatch> staged_;
  std::unique_ptr<StagedBatch> next_staged_;
  int64_t passes_ = 0;
  int64_t counted_corrupt_records_;
  // On their way for the step that was taken last: the variables' values, which
  // may be those of the step before it, and its rows.
  Pending values_, rows_;
  bool has_values_ = false;
  bool reused_values_ = false;  // by the last step
  // Of the step that is being done, and of the one before it.
  Pushes pushes_, last_pushes_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_LOOP_H_
