#include "worker/training_loop.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// 256 KiB: above it a message's fixed cost no longer matters.
constexpr size_t kPackElements = 65536;

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry& registry)
    : steps(registry.AddCounter("parasol_worker_steps_total",
                                "Steps whose gradients all shards have "
                                "acknowledged.")),
      examples(registry.AddCounter("parasol_worker_examples_total",
                                   "Training examples computed.")),
      loss(registry.AddGauge("parasol_worker_loss",
                             "Mean loss of the newest batch.")),
      step_seconds(registry.AddHistogram(
          "parasol_worker_step_duration_seconds",
          "From taking a step to having its successor's values.",
          LatencyBounds())),
      compute_seconds(
          registry.AddCounter("parasol_worker_compute_seconds_total",
                              "Time in forward and backward passes.")),
      wait_input_seconds(
          registry.AddCounter("parasol_worker_wait_input_seconds_total",
                              "Time without a batch to compute on.")),
      wait_steps_seconds(
          registry.AddCounter("parasol_worker_wait_steps_seconds_total",
                              "Time without a step granted by the chief.")),
      wait_pull_seconds(
          registry.AddCounter("parasol_worker_wait_pull_seconds_total",
                              "Time without the values to compute with.")),
      wait_push_seconds(registry.AddCounter(
          "parasol_worker_wait_push_seconds_total",
          "Time without the acknowledgement of earlier gradients.")) {}

TrainingLoop::TrainingLoop(const Options& options, Model& model,
                           InputPipeline& input, ParameterClient& parameters,
                           StepSource& steps, Clock& clock,
                           WorkerMetrics& metrics)
    : options_(options),
      model_(model),
      input_(input),
      parameters_(parameters),
      steps_(steps),
      clock_(clock),
      metrics_(metrics),
      report_start_(clock.Now()) {}

absl::Status TrainingLoop::Run() {
  RETURN_IF_ERROR(FinishPull(StartPull()));
  Pushes in_flight;  // of the step before
  while (true) {
    if (!steps_.CanStartNow()) {
      RETURN_IF_ERROR(FinishPushes(std::exchange(in_flight, {})));
    }
    const absl::StatusOr<bool> more = NextStep();
    if (!more.ok() || !*more) {
      // Drain in good order also when told to stop.
      RETURN_IF_ERROR(FinishPushes(std::move(in_flight)));
      return more.status();
    }
    const absl::Time start = clock_.Now();
    ASSIGN_OR_RETURN(const Batch* batch, NextBatch());
    RETURN_IF_ERROR(RunStep(*batch, in_flight));
    metrics_.step_seconds.Observe(absl::ToDoubleSeconds(clock_.Now() - start));
  }
}

// With overlap: the pull of the next values is on its way while this step
// computes, and the pushes of the last step have had this step's time to be
// acknowledged. Without: push, then pull, one after the other.
absl::Status TrainingLoop::RunStep(const Batch& batch, Pushes& in_flight) {
  Pending pull;
  if (options_.overlap) pull = StartPull();
  ASSIGN_OR_RETURN(Pushes pushes, Compute(batch));
  RETURN_IF_ERROR(FinishPushes(std::exchange(in_flight, std::move(pushes))));
  if (!options_.overlap) {
    RETURN_IF_ERROR(FinishPushes(std::exchange(in_flight, {})));
    pull = StartPull();
  }
  return FinishPull(std::move(pull));
}

absl::StatusOr<bool> TrainingLoop::NextStep() {
  const absl::Time start = clock_.Now();
  absl::StatusOr<bool> more = steps_.Start();
  Charge(metrics_.wait_steps_seconds, start);
  return more;
}

absl::StatusOr<const Batch*> TrainingLoop::NextBatch() {
  const absl::Time start = clock_.Now();
  absl::StatusOr<const Batch*> batch = input_.Next();
  Charge(metrics_.wait_input_seconds, start);
  return batch;
}

TrainingLoop::Pending TrainingLoop::StartPull() {
  std::vector<ParameterClient::Target> targets;
  for (size_t i = 0; i < model_.variables().size(); ++i) {
    targets.push_back({i, model_.HostValue(i)});
  }
  return parameters_.Pull(std::move(targets));
}

absl::Status TrainingLoop::FinishPull(Pending pull) {
  const absl::Time start = clock_.Now();
  const absl::Status pulled = pull->Wait();
  Charge(metrics_.wait_pull_seconds, start);
  RETURN_IF_ERROR(pulled) << "pull";
  for (size_t i = 0; i < model_.variables().size(); ++i) {
    RETURN_IF_ERROR(model_.Upload(i)) << model_.variables()[i].name;
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingLoop::Pushes> TrainingLoop::Compute(const Batch& batch) {
  Pushes pushes;
  std::vector<ParameterClient::Gradient> pack;
  size_t pack_elements = 0;
  const auto send_pack = [&] {
    if (pack.empty()) return;
    pushes.push_back(parameters_.Push(std::exchange(pack, {})));
    pack_elements = 0;
  };
  const absl::Time start = clock_.Now();
  // Gradients leave as they come, the last layer's first; small ones together.
  absl::StatusOr<BatchResult> result = model_.Gradients(
      batch, [&](size_t variable, absl::Span<const float> gradient) {
        pack.push_back({variable, gradient});
        pack_elements += gradient.size();
        if (pack_elements >= kPackElements) send_pack();
      });
  if (result.ok()) send_pack();
  Charge(metrics_.compute_seconds, start);
  RETURN_IF_ERROR(result.status());
  metrics_.examples.Add(result->examples);
  metrics_.loss.Set(result->loss_sum / result->examples);
  {
    absl::MutexLock lock(&report_mu_);
    report_.examples += result->examples;
    report_.loss_sum += result->loss_sum;
  }
  RETURN_IF_ERROR(CheckLoss(*result));
  return pushes;
}

absl::Status TrainingLoop::CheckLoss(const BatchResult& result) const {
  if (std::isfinite(result.loss_sum) ||
      options_.non_finite_loss == job::WorkerSettings::CONTINUE) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      "the loss is ", result.loss_sum,
      ": lower the learning rate, or set worker.non_finite_loss: CONTINUE"));
}

absl::Status TrainingLoop::FinishPushes(Pushes pushes) {
  if (pushes.empty()) return absl::OkStatus();
  const absl::Time start = clock_.Now();
  for (Pending& push : pushes) {
    RETURN_IF_ERROR(push->Wait()) << "push";
  }
  Charge(metrics_.wait_push_seconds, start);
  steps_.Complete();
  metrics_.steps.Add();
  absl::MutexLock lock(&report_mu_);
  ++report_.steps;
  return absl::OkStatus();
}

void TrainingLoop::Charge(Counter& seconds, absl::Time start) {
  seconds.Add(absl::ToDoubleSeconds(clock_.Now() - start));
}

TrainingReport TrainingLoop::TakeReport() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&report_mu_);
  TrainingReport report = std::exchange(report_, {});
  report.elapsed = now - std::exchange(report_start_, now);
  return report;
}

}  // namespace parasol
