#include "coordinator/steps/run_evaluations.h"

namespace parasol {
namespace {

// The times of evaluations as a schedule of checkpoints.
job::CheckpointPolicy EvaluationTimes(const job::EvaluationPolicy& policy) {
  job::CheckpointPolicy times;
  times.set_every_steps(policy.every_steps());
  times.set_every_seconds(policy.every_seconds());
  return times;
}

std::optional<int64_t> StepOf(
    const std::optional<durable::CheckpointManifest>& checkpoint) {
  return checkpoint ? std::optional<int64_t>(checkpoint->global_step())
                    : std::nullopt;
}

}  // namespace

RunEvaluations::RunEvaluations(const job::Job& job, const Options& options,
                               absl::Time now)
    : policy_(job.evaluation()),
      keeps_best_(job.checkpoint().has_keep_best()),
      has_place_(options.has_place),
      times_(EvaluationTimes(policy_), StepOf(options.resumed), now),
      decisions_(job, options.resumed, options.evaluations),
      lag_(policy_, StepOf(options.resumed).value_or(0),
           decisions_.evaluated_to(), options.limit) {
  if (options.resumed && options.resumed->evaluation_due()) {
    lag_.Written(options.resumed->global_step());
  }
}

std::vector<std::string> RunEvaluations::Update(
    absl::Span<const Evaluation> evaluations) {
  std::vector<std::string> lines = decisions_.Update(evaluations);
  lag_.Evaluated(decisions_.evaluated_to());
  return lines;
}

void RunEvaluations::Observe(const EvaluationLag::Look& look) {
  if (auto line = lag_.Observe(look)) warnings_.push_back(*std::move(line));
}

std::optional<int64_t> RunEvaluations::DueFrom(int64_t step,
                                               absl::Time now) const {
  if (IsDue(step, now) || lag_.IsUnevaluated(step)) return step;
  return times_.NextStep();
}

void RunEvaluations::Written(int64_t step, absl::Time now) {
  times_.Written(step, now);
  lag_.Written(step);
}

KeptCheckpoints RunEvaluations::Kept() const {
  KeptCheckpoints kept;
  const bool is_awaited = policy_.has_max_lag();
  if (!keeps_best_ && !is_awaited) return kept;
  kept.best_first = decisions_.best_first();
  // One more is being evaluated.
  if (is_awaited) kept.awaited = policy_.max_lag() + 1;
  // Without an evaluator no result is awaited.
  if (has_place_) kept.evaluated_to = decisions_.evaluated_to();
  return kept;
}

}  // namespace parasol
