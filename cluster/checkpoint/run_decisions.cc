#include "cluster/checkpoint/run_decisions.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cluster/job/learning_rate_field.h"

namespace parasol {
namespace {

std::optional<double> Smaller(std::optional<double> a,
                              std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The rate that the run had at the checkpoint, if it was reduced from the rate
// that the job still starts from.
std::optional<double> SavedRate(
    const job::Optimizer& optimizer,
    const std::optional<durable::CheckpointManifest>& resumed) {
  if (!resumed || !(resumed->reduced_learning_rate() > 0) ||
      !optimizer.has_reduce_on_plateau()) {
    return std::nullopt;
  }
  const job::Optimizer& was = resumed->job().optimizer();
  const bool is_same_start =
      was.kind_case() == optimizer.kind_case() &&
      InitialLearningRate(was) == InitialLearningRate(optimizer);
  return is_same_start ? std::optional<double>(resumed->reduced_learning_rate())
                       : std::nullopt;
}

int64_t NewestOf(absl::Span<const Evaluation> evaluations) {
  return evaluations.empty() ? -1 : evaluations.back().global_step;
}

// The fields that decisions go by.
job::Job PoliciesOf(const job::Job& job) {
  job::Job policies;
  *policies.mutable_end() = job.end();
  *policies.mutable_checkpoint() = job.checkpoint();
  *policies.mutable_optimizer() = job.optimizer();
  return policies;
}

}  // namespace

RunDecisions::RunDecisions(
    const job::Job& job,
    const std::optional<durable::CheckpointManifest>& resumed,
    absl::Span<const Evaluation> evaluations)
    : job_(PoliciesOf(job)),
      saved_rate_(SavedRate(job.optimizer(), resumed)),
      decisions_(DecideByEvaluations(job_, evaluations)),
      evaluated_to_(NewestOf(evaluations)) {}

std::optional<double> RunDecisions::learning_rate() const {
  return Smaller(saved_rate_, decisions_.learning_rate);
}

std::vector<std::string> RunDecisions::Update(
    absl::Span<const Evaluation> evaluations) {
  const EvaluationDecisions before = decisions_;
  const std::optional<double> rate_before = learning_rate();
  decisions_ = DecideByEvaluations(job_, evaluations);
  evaluated_to_ = NewestOf(evaluations);
  if (before.stop) decisions_.stop = before.stop;
  decisions_.learning_rate =
      Smaller(before.learning_rate, decisions_.learning_rate);
  std::vector<std::string> lines;
  if (!before.stop && decisions_.stop) lines.push_back(*decisions_.stop);
  if (!decisions_.best_first.empty() &&
      (before.best_first.empty() ||
       before.best_first.front() != decisions_.best_first.front())) {
    lines.push_back(absl::StrFormat(
        "the best checkpoint by %s is that of step %d",
        job_.checkpoint().keep_best().metric(), decisions_.best_first.front()));
  }
  if (const auto rate = learning_rate(); rate != rate_before) {
    lines.push_back(absl::StrFormat(
        "%s has not improved: the learning rate is reduced from %g to %g",
        job_.optimizer().reduce_on_plateau().metric(),
        rate_before.value_or(InitialLearningRate(job_.optimizer())), *rate));
  }
  return lines;
}

}  // namespace parasol
