#ifndef PARASOL_WORKER_TRAINING_LOOP_H_
#define PARASOL_WORKER_TRAINING_LOOP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/parameter_client.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/step_source.h"

namespace parasol {

struct WorkerMetrics {
  explicit WorkerMetrics(MetricsRegistry& registry);

  Counter steps;
  Counter examples;
  Gauge loss;
  Histogram step_seconds;
  // Where the loop's time goes; compute over the sum of all is its efficiency.
  Counter compute_seconds;
  Counter wait_input_seconds;
  Counter wait_steps_seconds;
  Counter wait_pull_seconds;
  Counter wait_push_seconds;
};

// What a worker tells the chief with each heartbeat.
struct TrainingReport {
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;  // over the examples
  absl::Duration elapsed;
};

// A worker's loop: take a step, pull, compute, push. With `overlap` the next
// values are pulled and the last gradients are pushed while a step computes,
// so that a step sees the worker's own gradients up to the last but one.
//
// Run() is for one thread; TakeReport() may be called from any.
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
               WorkerMetrics& metrics);

  // Trains until there are no more steps; every gradient has then been
  // acknowledged. Errors are those of the input, the model, the parameters and
  // the steps, and
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status Run();

  // What was done since the last report.
  TrainingReport TakeReport() ABSL_LOCKS_EXCLUDED(report_mu_);

 private:
  using Pending = std::unique_ptr<ParameterClient::Pending>;
  // One step's gradients on their way to the shards.
  using Pushes = std::vector<Pending>;

  Pending StartPull();
  absl::Status FinishPull(Pending pull);
  absl::Status FinishPushes(Pushes pushes);
  absl::StatusOr<const Batch*> NextBatch();
  absl::StatusOr<bool> NextStep();
  absl::StatusOr<Pushes> Compute(const Batch& batch);
  absl::Status CheckLoss(const BatchResult& result) const;
  absl::Status RunStep(const Batch& batch, Pushes& in_flight);
  // Adds the time since `start` to `seconds`.
  void Charge(Counter& seconds, absl::Time start);

  const Options options_;
  Model& model_;
  InputPipeline& input_;
  ParameterClient& parameters_;
  StepSource& steps_;
  Clock& clock_;
  WorkerMetrics& metrics_;

  absl::Mutex report_mu_;
  TrainingReport report_ ABSL_GUARDED_BY(report_mu_);
  absl::Time report_start_ ABSL_GUARDED_BY(report_mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_LOOP_H_
