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

TrainingLoop::TrainingLoop(const Options& options, Model& model,
                           InputPipeline& input, ParameterClient& parameters,
                           StepSource& steps, Clock& clock,
                           WorkerMetrics& metrics, TrainingReporter& reporter)
    : options_(options),
      model_(model),
      staged_(model.NewStagedBatch()),
      input_(input),
      parameters_(parameters),
      steps_(steps),
      clock_(clock),
      metrics_(metrics),
      reporter_(reporter) {}

absl::Status TrainingLoop::Run() {
  Pushes in_flight;  // of the step before
  absl::StatusOr<Pending> values = TakeStep();
  while (values.ok() && *values != nullptr) {
    const absl::Time start = clock_.Now();
    values = RunStep(*std::move(values), in_flight);
    metrics_.step_seconds.Observe(absl::ToDoubleSeconds(clock_.Now() - start));
  }
  return values.status();
}

// Returns the pull of the step after it. With overlap that is on its way while
// this step computes, if the step is there to be had, and the pushes of the
// last step have had this step's time to be acknowledged. Without: push, then
// pull, one after the other.
absl::StatusOr<TrainingLoop::Pending> TrainingLoop::RunStep(Pending values,
                                                            Pushes& in_flight) {
  ASSIGN_OR_RETURN(const Batch* batch, NextBatch());
  RETURN_IF_ERROR(model_.Stage(*batch, *staged_));
  RETURN_IF_ERROR(FinishPull(std::move(values)));
  const bool ahead = options_.overlap && steps_.CanStartNow();
  absl::StatusOr<Pending> next;
  if (ahead) next = TakeStep();
  ASSIGN_OR_RETURN(Pushes pushes, Compute());
  RETURN_IF_ERROR(FinishPushes(std::exchange(in_flight, std::move(pushes))));
  const bool goes_on = ahead && next.ok() && *next != nullptr;
  if (!goes_on) {
    RETURN_IF_ERROR(FinishPushes(std::exchange(in_flight, {})));
  }
  return ahead ? std::move(next) : TakeStep();
}

absl::StatusOr<TrainingLoop::Pending> TrainingLoop::TakeStep() {
  const absl::Time start = clock_.Now();
  const absl::StatusOr<bool> more = steps_.Start();
  Charge(metrics_.wait_steps_seconds, start);
  RETURN_IF_ERROR(more.status());
  return *more ? StartPull() : nullptr;
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

absl::StatusOr<TrainingLoop::Pushes> TrainingLoop::Compute() {
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
  const auto send = [&](size_t variable, absl::Span<const float> gradient) {
    pack.push_back({variable, gradient});
    pack_elements += gradient.size();
    if (pack_elements >= kPackElements) send_pack();
  };
  const auto no_rows = [](size_t, absl::Span<const uint64_t>,
                          absl::Span<const float>) {};
  absl::StatusOr<BatchResult> result = model_.Gradients(
      *staged_, /*seed=*/batches_++, {.variable = send, .rows = no_rows});
  if (result.ok()) send_pack();
  Charge(metrics_.compute_seconds, start);
  reporter_.AddPass(start, clock_.Now());
  RETURN_IF_ERROR(result.status());
  metrics_.examples.Add(result->examples);
  metrics_.loss.Set(result->loss_sum / result->examples);
  reporter_.AddExamples(result->examples, result->loss_sum);
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
  reporter_.AddStep();
  return absl::OkStatus();
}

void TrainingLoop::Charge(Counter& seconds, absl::Time start) {
  seconds.Add(absl::ToDoubleSeconds(clock_.Now() - start));
}

}  // namespace parasol
