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
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker's loop: take a step, pull, compute, push. A step's values are pulled
// after it was taken: by then others' gradients that the chief had it wait for
// (bounded staleness) have been applied. With `overlap` a step that can be had
// at once is taken, and its values are pulled, while the one before computes,
// whose gradients are pushed meanwhile: a step sees the worker's own gradients
// up to the last but one. For one thread.
class TrainingLoop {
 public:
  struct Options {
    bool overlap = true;
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
  };

  // All must outlive the loop. The model's variables are the client's, in the
  // same order.
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

  Pending StartPull();
  absl::Status FinishPull(Pending pull);
  absl::Status FinishPushes(Pushes pushes);
  absl::StatusOr<const Batch*> NextBatch();
  // The pull of the next step's values; nullptr: there are no more steps.
  absl::StatusOr<Pending> TakeStep();
  absl::StatusOr<Pushes> Compute();
  absl::Status CheckLoss(const BatchResult& result) const;
  absl::StatusOr<Pending> RunStep(Pending values, Pushes& in_flight);
  // Adds the time since `start` to `seconds`.
  void Charge(Counter& seconds, absl::Time start);

  const Options options_;
  Model& model_;
  // The batch of the step that is being done.
  const std::unique_ptr<StagedBatch> staged_;
  uint64_t batches_ = 0;  // computed
  InputPipeline& input_;
  ParameterClient& parameters_;
  StepSource& steps_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_LOOP_H_
