#include "worker/training_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "worker/pass_seed.h"

namespace parasol {

TrainingLoop::Options TrainingLoop::OptionsOf(const job::Job& job) {
  const job::ParameterServerStrategy& strategy = job.parameter_server();
  Options options;
  options.overlap = job.worker().overlap() && !strategy.has_local_steps();
  options.may_reuse_values = options.overlap && job.worker().reuse_values() &&
                             !strategy.has_bounded_staleness();
  options.non_finite_loss = job.worker().non_finite_loss();
  options.seed = job.seed();
  return options;
}

TrainingLoop::TrainingLoop(const Options& options, Model& model,
                           InputPipeline& input, TrainingParameters& parameters,
                           StepSource& steps, Clock& clock,
                           WorkerMetrics& metrics, TrainingReporter& reporter)
    : options_(options),
      model_(model),
      input_(input),
      parameters_(parameters),
      steps_(steps),
      clock_(clock),
      metrics_(metrics),
      record_(options.non_finite_loss, options.points, clock, metrics,
              reporter),
      staged_(model.NewStagedBatch()),
      next_staged_(model.NewStagedBatch()),
      counted_corrupt_records_(options.counted_corrupt_records),
      fragments_(model.fragments()),
      has_(model.variables().size()) {}

absl::Status TrainingLoop::Run() {
  absl::Status result = RunSteps();
  if (result.ok()) result = FinishValues();
  if (!result.ok()) Abandon();
  return result;
}

// What is in flight goes to and comes from this object's and the model's
// memory.
void TrainingLoop::Abandon() {
  parameters_.Stop();
  for (const Pending& pull : values_) pull->Wait().IgnoreError();
  if (rows_ != nullptr) rows_->Wait().IgnoreError();
  for (const Pushes* pushes : {&pushes_, &last_pushes_}) {
    for (const Pending& push : *pushes) push->Wait().IgnoreError();
  }
}

absl::Status TrainingLoop::RunSteps() {
  absl::StatusOr<StagedBatch*> batch = TakeStep();
  while (batch.ok() && *batch != nullptr) {
    const absl::Time start = clock_.Now();
    batch = RunStep(**batch);
    metrics_.step_seconds.Observe(absl::ToDoubleSeconds(clock_.Now() - start));
  }
  return batch.status();
}

// Returns the batch of the step after it. With overlap its rows are on their
// way while this step computes, if the step is there to be had, its values
// follow this step's gradients, and the pushes of the last step have had this
// step's time to be acknowledged. Without: push, then pull, one after the
// other.
absl::StatusOr<StagedBatch*> TrainingLoop::RunStep(StagedBatch& batch) {
  RETURN_IF_ERROR(FinishPulls());
  absl::StatusOr<StagedBatch*> next = nullptr;
  if (options_.overlap && steps_.CanStartNow()) {
    next = StartStep(PullVariables::kBehindGradients);
  }
  // Values that are late are used in the next step.
  pulls_behind_gradients_ = next.ok() && *next != nullptr && values_.empty();
  RETURN_IF_ERROR(Compute(batch));
  RETURN_IF_ERROR(FinishPushes(last_pushes_));
  std::swap(pushes_, last_pushes_);
  if (next.ok() && *next != nullptr) return next;
  RETURN_IF_ERROR(FinishPushes(last_pushes_));
  RETURN_IF_ERROR(next.status());
  return TakeStep();
}

absl::StatusOr<StagedBatch*> TrainingLoop::TakeStep() {
  while (true) {
    ASSIGN_OR_RETURN(StagedBatch* const batch, StartStep(PullVariables::kNow));
    if (!std::exchange(has_empty_step_, false)) return batch;
    steps_.Complete();
    record_.AddStep();
  }
}

// The variables need not wait for the batch, the rows are those that it names.
absl::StatusOr<StagedBatch*> TrainingLoop::StartStep(PullVariables pull) {
  if (has_empty_step_) return nullptr;
  std::optional<int64_t> number;
  {
    const TrainingRecord::Timed timed(record_, StepPart::kWait);
    ASSIGN_OR_RETURN(number, steps_.Start());
  }
  if (!number.has_value()) return nullptr;
  if (pull == PullVariables::kNow) PullTheRest();
  ASSIGN_OR_RETURN(StagedBatch* const batch, Stage(*number));
  has_empty_step_ = batch == nullptr;
  if (has_empty_step_) {
    // The next step is granted later, and may have to see newer values.
    RETURN_IF_ERROR(FinishValues());
    return nullptr;
  }
  PullRows(*batch);
  return batch;
}

absl::StatusOr<const Batch*> TrainingLoop::NextBatch(int64_t number) {
  const TrainingRecord::Timed timed(record_, StepPart::kInput);
  std::vector<int64_t> numbers = steps_.Upcoming();
  numbers.insert(numbers.begin(), number);
  input_.SetNext(numbers);
  return input_.Next();
}

absl::StatusOr<StagedBatch*> TrainingLoop::Stage(int64_t number) {
  ASSIGN_OR_RETURN(const Batch* const batch, NextBatch(number));
  const int64_t corrupt = input_.skipped_records();
  metrics_.corrupt_records.Add(
      corrupt - std::exchange(counted_corrupt_records_, corrupt));
  if (batch->size == 0) return nullptr;
  std::swap(staged_, next_staged_);
  {
    const TrainingRecord::Timed timed(record_, StepPart::kCompute);
    RETURN_IF_ERROR(model_.Stage(*batch, *staged_));
  }
  numbers_.push_back(number);
  return staged_.get();
}

std::vector<TrainingParameters::Target> TrainingLoop::TargetsOf(
    const std::vector<size_t>& variables) {
  std::vector<TrainingParameters::Target> targets;
  for (const size_t variable : variables) {
    targets.push_back({variable, model_.HostValue(variable)});
    has_[variable] = Values::kUnderWay;
  }
  return targets;
}

void TrainingLoop::PushPack(TrainingParameters::PushRequest pack) {
  const bool pulls = pulls_behind_gradients_ || !fragments_.empty();
  if (!pulls || pack.gradients.empty()) {
    pushes_.push_back(parameters_.Push(std::move(pack)));
    return;
  }
  std::vector<size_t> variables;
  for (const auto& gradient : pack.gradients) {
    variables.push_back(gradient.variable);
  }
  auto [push, pull] =
      parameters_.PushPull(std::move(pack), {.targets = TargetsOf(variables)});
  pushes_.push_back(std::move(push));
  values_.push_back(std::move(pull));
}

void TrainingLoop::PullTheRest() {
  std::vector<size_t> variables;
  for (size_t i = 0; i < has_.size(); ++i) {
    if (has_[i] == Values::kNone) variables.push_back(i);
  }
  if (variables.empty()) return;
  values_.push_back(parameters_.Pull(TargetsOf(variables)));
}

void TrainingLoop::PullRows(const StagedBatch& batch) {
  TrainingParameters::PullRequest request;
  for (const StagedBatch::Rows& rows : batch.rows()) {
    if (rows.ids.empty()) continue;
    request.rows.push_back({rows.table, rows.ids, rows.values});
  }
  if (request.rows.empty()) return;
  rows_ = parameters_.Pull(std::move(request));
}

absl::Status TrainingLoop::FinishPulls() {
  if (rows_ != nullptr) {
    const TrainingRecord::Timed timed(record_, StepPart::kPull);
    Pending rows = std::move(rows_);
    RETURN_IF_ERROR(Await(rows)) << "pull of rows";
  }
  const bool may_reuse =
      options_.may_reuse_values && has_values_ && !reused_values_;
  const bool are_there = std::all_of(
      values_.begin(), values_.end(),
      [](const Pending& pull) { return pull->WaitFor(absl::ZeroDuration()); });
  reused_values_ = may_reuse && !are_there;
  if (reused_values_) {
    metrics_.reused_values.Add();
    return absl::OkStatus();
  }
  return FinishValues();
}

absl::Status TrainingLoop::FinishValues() {
  if (values_.empty()) return absl::OkStatus();
  {
    const TrainingRecord::Timed timed(record_, StepPart::kPull);
    while (!values_.empty()) {
      Pending values = std::move(values_.back());
      values_.pop_back();
      RETURN_IF_ERROR(Await(values)) << "pull";
    }
  }
  for (size_t i = 0; i < has_.size(); ++i) {
    if (has_[i] != Values::kUnderWay) continue;
    const VariableSpec& variable = model_.variables()[i];
    // Nothing changes a frozen one: it is pulled once.
    const bool stays = variable.frozen || !fragments_.empty();
    has_[i] = stays ? Values::kThere : Values::kNone;
    RETURN_IF_ERROR(model_.Upload(i)) << variable.name;
  }
  has_values_ = true;
  return absl::OkStatus();
}

absl::Status TrainingLoop::Await(Pending& pending) {
  while (!record_.WaitFor(*pending, kWaitSlice)) {
  }
  return pending->Wait();
}

absl::Status TrainingLoop::Compute(StagedBatch& batch) {
  const uint64_t seed =
      PassSeed(options_.seed, options_.first_pass + passes_++, options_.worker);
  BatchResult result;
  if (fragments_.empty()) {
    ASSIGN_OR_RETURN(result, RunPass(batch, seed, has_.size()));
  }
  for (size_t i = 0; i < fragments_.size(); ++i) {
    if (i > 0) {
      RETURN_IF_ERROR(FinishValues());
    }
    batch.pass = i;
    ASSIGN_OR_RETURN(const BatchResult of_pass,
                     RunPass(batch, seed, fragments_[i].size()));
    result.Add(of_pass);
    RETURN_IF_ERROR(record_.CheckLoss(result));
  }
  const int64_t number = numbers_.front();
  numbers_.pop_front();
  // A stop may come before the first local step.
  if (!fragments_.empty() && result.examples == 0) return absl::OkStatus();
  return record_.AddResult(result, number);
}

absl::StatusOr<BatchResult> TrainingLoop::RunPass(StagedBatch& batch,
                                                  uint64_t seed,
                                                  size_t variables) {
  TrainingParameters::PushRequest pack;
  size_t pack_elements = 0;
  const auto send_pack = [&] {
    // The first push may be empty: a step is over when its pushes are.
    const bool is_empty = pack.gradients.empty() && pack.rows.empty();
    if (is_empty && !pushes_.empty()) return;
    PushPack(std::exchange(pack, {}));
    pack_elements = 0;
  };
  // Gradients leave as they come, the last layer's first; small ones together.
  // The pass may go on behind the last one.
  const auto add_variable = [&](size_t variable,
                                absl::Span<const float> gradient) {
    pack.gradients.push_back({variable, gradient});
    pack_elements += gradient.size();
    const bool is_last = --variables == 0 && !fragments_.empty();
    if (is_last || pack_elements >= TrainingParameters::kPackElements) {
      send_pack();
    }
  };
  const auto add_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                            absl::Span<const float> gradients) {
    pack.rows.push_back({table, ids, gradients, batch.CountsOf(table, ids)});
  };
  const TrainingRecord::Timed timed(record_, StepPart::kCompute);
  ASSIGN_OR_RETURN(
      BatchResult result,
      model_.Gradients(batch, seed,
                       {.variable = add_variable, .rows = add_rows}));
  send_pack();
  if (pulls_behind_gradients_) PullTheRest();
  return result;
}

absl::Status TrainingLoop::FinishPushes(Pushes& pushes) {
  if (pushes.empty()) return absl::OkStatus();
  {
    const TrainingRecord::Timed timed(record_, StepPart::kPush);
    while (!pushes.empty()) {
      Pending push = std::move(pushes.back());
      pushes.pop_back();
      RETURN_IF_ERROR(Await(push)) << "push";
    }
  }
  steps_.Complete();
  record_.AddStep();
  return absl::OkStatus();
}

}  // namespace parasol
