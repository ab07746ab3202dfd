#include "cluster/checkpoint/evaluation_decisions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "cluster/job/learning_rate_field.h"

namespace parasol {
namespace {

// A value of a metric, and the step that it is of.
struct Value {
  int64_t step = 0;
  double value = 0;
};

std::vector<Value> ValuesOf(const std::string& metric,
                            absl::Span<const Evaluation> evaluations) {
  std::vector<Value> values;
  for (const Evaluation& evaluation : evaluations) {
    const std::optional<double> value = ValueOf(evaluation, metric);
    if (evaluation.global_step == 0 || !value) continue;
    values.push_back({evaluation.global_step, *value});
  }
  return values;
}

// Keeps the best value. The first one is an improvement, and NaN never is.
class Best {
 public:
  Best(job::MetricMode mode, double min_delta)
      : sign_(mode == job::MAX ? -1 : 1), min_delta_(min_delta) {}

  // Takes a value. Returns true if it is better than all before it by more than
  // the smallest change.
  bool Improves(const Value& value) {
    if (!(sign_ * value.value + min_delta_ < smallest_)) return false;
    smallest_ = sign_ * value.value;
    best_ = value;
    return true;
  }
  // The step is 0 while every value was NaN.
  const Value& best() const { return best_; }

 private:
  const double sign_;
  const double min_delta_;
  double smallest_ = std::numeric_limits<double>::infinity();
  Value best_;
};

// Returns words for the smallest change that counts; none if every one does.
std::string ByMoreThan(double min_delta) {
  if (min_delta == 0) return "";
  return absl::StrFormat("by more than min_delta %.6g ", min_delta);
}

std::optional<std::string> StopBy(const job::EarlyStopping& policy,
                                  const std::vector<Value>& values) {
  Best best(policy.mode(), policy.min_delta());
  int waited = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    ++waited;
    if (best.Improves(values[i])) {
      waited = 0;
    } else if (i > 0 && waited >= policy.patience()) {
      if (best.best().step == 0) {
        return absl::StrFormat(
            "early stopping: %s was not a number in %d evaluations, the last "
            "one at step %d",
            policy.metric(), waited, values[i].step);
      }
      return absl::StrFormat(
          "early stopping: %s was %.6g at step %d, and has not improved on its "
          "best, %.6g at step %d, %sin %d evaluations",
          policy.metric(), values[i].value, values[i].step, best.best().value,
          best.best().step, ByMoreThan(policy.min_delta()), waited);
    }
  }
  return std::nullopt;
}

std::optional<double> ReducedRate(const job::ReduceOnPlateau& policy,
                                  double initial_rate,
                                  const std::vector<Value>& values) {
  Best best(policy.mode(), policy.min_delta());
  double rate = initial_rate;
  bool is_reduced = false;
  int waited = 0;
  int cooldown = 0;
  for (const Value& value : values) {
    if (cooldown > 0) {
      --cooldown;
      waited = 0;
    }
    if (best.Improves(value)) {
      waited = 0;
    } else if (cooldown == 0 && ++waited >= policy.patience() &&
               rate > policy.min_rate()) {
      rate = std::max(rate * policy.factor(), policy.min_rate());
      is_reduced = true;
      cooldown = policy.cooldown();
      waited = 0;
    }
  }
  return is_reduced ? std::optional<double>(rate) : std::nullopt;
}

std::vector<int64_t> BestFirst(const job::KeepBest& policy,
                               std::vector<Value> values) {
  std::erase_if(values, [](const Value& v) { return std::isnan(v.value); });
  std::stable_sort(values.begin(), values.end(),
                   [&policy](const Value& a, const Value& b) {
                     return policy.mode() == job::MAX ? a.value > b.value
                                                      : a.value < b.value;
                   });
  std::vector<int64_t> steps;
  for (const Value& value : values) steps.push_back(value.step);
  return steps;
}

}  // namespace

bool HasEvaluationDecisions(const job::Job& job) {
  return job.end().has_early_stopping() || job.checkpoint().has_keep_best() ||
         job.optimizer().has_reduce_on_plateau();
}

bool GoesByEvaluations(const job::Job& job) {
  return HasEvaluationDecisions(job) || job.evaluation().has_max_lag();
}

bool IsToBeEvaluated(const durable::CheckpointManifest& manifest) {
  return !manifest.job().has_evaluation() || manifest.evaluation_due() ||
         manifest.final();
}

EvaluationDecisions DecideByEvaluations(
    const job::Job& job, absl::Span<const Evaluation> evaluations) {
  EvaluationDecisions decisions;
  if (job.end().has_early_stopping()) {
    const job::EarlyStopping& policy = job.end().early_stopping();
    decisions.stop = StopBy(policy, ValuesOf(policy.metric(), evaluations));
  }
  if (job.checkpoint().has_keep_best()) {
    const job::KeepBest& policy = job.checkpoint().keep_best();
    decisions.best_first =
        BestFirst(policy, ValuesOf(policy.metric(), evaluations));
  }
  if (job.optimizer().has_reduce_on_plateau()) {
    const job::ReduceOnPlateau& policy = job.optimizer().reduce_on_plateau();
    decisions.learning_rate =
        ReducedRate(policy, InitialLearningRate(job.optimizer()),
                    ValuesOf(policy.metric(), evaluations));
  }
  return decisions;
}

}  // namespace parasol
