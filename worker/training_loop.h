#ifndef PARASOL_WORKER_TRAINING_LOOP_H_
#define PARASOL_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/progress/curve_points.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/model.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/step/step_source.h"
#include "worker/training_record.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker's loop in asynchronous training: take a step, pull, compute, push.
// The loop pulls a step's values, and the rows of sparse tables that its batch
// reads, after it has taken the step. With bounded staleness, the chief grants
// a step only after the gradients of other workers that the step must see have
// been applied, so the pull sees them. Must be used from one thread.
//
// The loop with `overlap` takes the next step before the current one computes,
// if it can be had at once, and pulls its rows meanwhile. Each gradient is
// pushed as soon as it is there, and the variable's values for the next step
// are pulled behind it, in the same lanes: a step sees all of this worker's own
// gradients of variables, and its gradients of rows up to the last but one.
// With `may_reuse_values` a step perhaps sees one gradient less.
//
// A fragment of a model that has them is pushed, and its next values are pulled
// behind it, in a pass of the step; the next pass waits for them.
class TrainingLoop {
 public:
  struct Options {
    bool overlap = true;
    // True if a step whose values have not arrived when it could compute may
    // use the values of the step before. Never happens in two consecutive
    // steps: the second one waits for its values. Must be false if a step must
    // see the values pushed before it was taken (bounded staleness). The loop
    // always waits for rows.
    bool may_reuse_values = false;
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
    // Seed of everything random in a pass: see PassSeed(). Passes are numbered
    // from `first_pass`.
    uint64_t seed = 0;
    int worker = 0;
    int64_t first_pass = 0;
    // Points between which losses are told apart, if they are known.
    CurvePoints points = {};
    // Number of the input's skipped_records() that the metrics already include.
    int64_t counted_corrupt_records = 0;
  };

  // Returns the options of a worker of a cluster as its job says. Local steps
  // do not overlap: an exchange counts as completed before the next one begins,
  // which may take long and be left, and values are waited for in any case.
  static Options OptionsOf(const job::Job& job);

  // `input` is a reader by number. All references must outlive the loop. The
  // variables and tables of `model` and `parameters` are the same, in the same
  // order. After an error `parameters` has been stopped.
  TrainingLoop(const Options& options, Model& model, InputPipeline& input,
               TrainingParameters& parameters, StepSource& steps, Clock& clock,
               WorkerMetrics& metrics, TrainingReporter& reporter);

  // Trains until there are no more steps; every gradient has then been
  // acknowledged. Returns errors of the input, the model, the parameters and
  // the steps, and
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status Run();

 private:
  using Pending = std::unique_ptr<TrainingParameters::Pending>;
  // Pushes of one step's gradients that are not yet acknowledged.
  using Pushes = std::vector<Pending>;

  absl::Status RunSteps();
  // Takes the next step that has something to compute and returns its batch,
  // with its pulls started; nullptr if there are no more steps. Steps whose
  // batches have no examples are completed: no other step may be in flight.
  absl::StatusOr<StagedBatch*> TakeStep();
  // Time at which the variables of a step that is started are pulled: at once,
  // or behind the gradients of the step that computes next.
  enum class PullVariables { kNow, kBehindGradients };
  // Takes the next step, perhaps while another one is in flight. Returns
  // nullptr if there are no more steps, or if its batch has no examples;
  // has_empty_step_ is then true.
  absl::StatusOr<StagedBatch*> StartStep(PullVariables pull);
  absl::StatusOr<StagedBatch*> RunStep(StagedBatch& batch);
  // Returns batch `number`, staged; nullptr if it has no examples.
  absl::StatusOr<StagedBatch*> Stage(int64_t number);
  absl::StatusOr<const Batch*> NextBatch(int64_t number);
  // Returns the memory of these variables' values, and notes that a pull of
  // them is under way for the step that was taken last.
  std::vector<TrainingParameters::Target> TargetsOf(
      const std::vector<size_t>& variables);
  // Starts a push and, if the step that was taken last is to follow it, a pull
  // of the same variables.
  void PushPack(TrainingParameters::PushRequest pack);
  // Starts pulls of the variables that no pull is under way of.
  void PullTheRest();
  void PullRows(const StagedBatch& batch);
  absl::Status FinishPulls();
  // Waits for the values that are under way, and gives them to the model.
  absl::Status FinishValues();
  absl::Status Await(Pending& pending);
  // Leaves the gradients' pushes in `pushes_`.
  absl::Status Compute(StagedBatch& batch);
  // Makes one pass of it, which gives the gradients of `variables`.
  absl::StatusOr<BatchResult> RunPass(StagedBatch& batch, uint64_t seed,
                                      size_t variables);
  absl::Status FinishPushes(Pushes& pushes);
  void Abandon();

  const Options options_;
  Model& model_;
  InputPipeline& input_;
  TrainingParameters& parameters_;
  StepSource& steps_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingRecord record_;

  // The batch that is computing, and the batch whose values are being pulled.
  std::unique_ptr<StagedBatch> staged_;
  std::unique_ptr<StagedBatch> next_staged_;
  // The numbers of the batches that are staged and have yet to be computed.
  std::deque<int64_t> numbers_;
  // True if the step that was started last has no examples and is not
  // completed: the steps before it come first.
  bool has_empty_step_ = false;
  int64_t passes_ = 0;
  int64_t counted_corrupt_records_;
  // Pulls for the step that was taken last: of the variables' values, which may
  // belong to the step before it, and of its rows.
  std::vector<Pending> values_;
  Pending rows_;
  // The variables of each pass; empty: all, in one.
  const std::vector<std::vector<size_t>> fragments_;
  // The values that the next step needs, of each variable: yet to be pulled,
  // pulled by `values_`, or there: of a frozen one, or in fragments.
  enum class Values { kNone, kUnderWay, kThere };
  std::vector<Values> has_;
  // True while values are pulled behind the gradients of the step that
  // computes.
  bool pulls_behind_gradients_ = false;
  bool has_values_ = false;
  bool reused_values_ = false;  // true if the last step reused values
  // Pushes of the current step and of the step before it.
  Pushes pushes_, last_pushes_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_LOOP_H_
