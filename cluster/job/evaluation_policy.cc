#include "cluster/job/evaluation_policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/did_you_mean.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

constexpr char kLoss[] = "loss";

// Returns AUTO for a metric of which neither more nor less is better.
job::MetricMode ModeOf(absl::string_view result) {
  const absl::string_view metric = MetricOf(result);
  if (metric == kLoss || metric == "log_loss" ||
      absl::EndsWith(metric, "_error")) {
    return job::MIN;
  }
  for (const absl::string_view share : {"precision", "recall", "f1", "ndcg"}) {
    if (metric == share ||
        absl::StartsWith(metric, absl::StrCat(share, "_at_"))) {
      return job::MAX;
    }
  }
  const bool is_max = absl::EndsWith(metric, "accuracy") ||
                      absl::EndsWith(metric, "auc") || metric == "r_squared";
  return is_max ? job::MAX : job::AUTO;
}

template <typename Policy>
void FillMetric(Policy& policy) {
  PARASOL_SET_DEFAULT(policy, metric, kLoss);
  if (policy.mode() == job::AUTO) policy.set_mode(ModeOf(policy.metric()));
}

using Outputs = std::optional<std::vector<OutputSpec>>;

absl::Status RequireMetric(const std::string& path, const std::string& metric,
                           const job::Model& model,
                           const std::vector<OutputSpec>& outputs) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ResultNames(model, outputs));
  if (std::count(names.begin(), names.end(), metric) > 0) {
    return absl::OkStatus();
  }
  return Fault(
      absl::StrCat(path, ".metric"),
      absl::StrCat("\"", metric, "\" is no metric of the model, which has ",
                   absl::StrJoin(names, ", "), "; add it to ",
                   model.output().empty() ? "model.metric"
                                          : "the metrics of model.output",
                   ", or choose one", DidYouMean(metric, names)));
}

template <typename Policy>
absl::Status ValidateMetric(const std::string& path, const Policy& policy,
                            const job::Job& job, const Outputs& outputs) {
  if (!job.has_eval()) {
    return Fault(path, "needs `eval`, the examples that are evaluated");
  }
  if (!outputs) return absl::OkStatus();
  RETURN_IF_ERROR(RequireMetric(path, policy.metric(), job.model(), *outputs));
  if (policy.mode() != job::AUTO) return absl::OkStatus();
  return Fault(absl::StrCat(path, ".mode"),
               absl::StrCat("AUTO does not say which ", policy.metric(),
                            " is better; set MIN or MAX"));
}

Faults ValidateEarlyStopping(const job::Job& job, const Outputs& outputs) {
  const std::string path = "end.early_stopping";
  const job::EarlyStopping& policy = job.end().early_stopping();
  Faults faults;
  faults.Add(ValidateMetric(path, policy, job, outputs));
  faults.Add(RequireInRange(absl::StrCat(path, ".patience"), policy.patience(),
                            0, kMaxInt));
  faults.Add(
      RequireAtLeastZero(absl::StrCat(path, ".min_delta"), policy.min_delta()));
  return faults;
}

Faults ValidateReduceOnPlateau(const job::Job& job, const Outputs& outputs) {
  const std::string path = "optimizer.reduce_on_plateau";
  const job::ReduceOnPlateau& policy = job.optimizer().reduce_on_plateau();
  Faults faults;
  faults.Add(ValidateMetric(path, policy, job, outputs));
  if (job.optimizer().learning_rate_schedule().kind_case() !=
      job::LearningRateSchedule::KIND_NOT_SET) {
    faults.Add(Fault(path,
                     "learning_rate_schedule changes the rate too; remove one "
                     "of the two"));
  }
  if (!(policy.factor() > 0 && policy.factor() < 1)) {
    faults.Add(
        Fault(absl::StrCat(path, ".factor"),
              absl::StrCat(policy.factor(), " is not above 0 and below 1")));
  }
  faults.Add(RequireInRange(absl::StrCat(path, ".patience"), policy.patience(),
                            0, kMaxInt));
  faults.Add(RequireInRange(absl::StrCat(path, ".cooldown"), policy.cooldown(),
                            0, kMaxInt));
  faults.Add(
      RequireAtLeastZero(absl::StrCat(path, ".min_delta"), policy.min_delta()));
  faults.Add(
      RequireAtLeastZero(absl::StrCat(path, ".min_rate"), policy.min_rate()));
  return faults;
}

Faults ValidateTimes(const job::Job& job) {
  const job::EvaluationPolicy& policy = job.evaluation();
  Faults faults;
  if (!job.has_eval()) {
    faults.Add(Fault("evaluation", "needs `eval`, the examples to evaluate"));
  }
  if (!policy.has_every_steps() && !policy.has_every_seconds()) {
    faults.Add(
        Fault("evaluation", "neither every_steps nor every_seconds is set"));
  }
  if (policy.has_every_steps()) {
    faults.Add(RequireInRange("evaluation.every_steps", policy.every_steps(), 1,
                              kMaxSteps));
  }
  if (policy.has_every_seconds()) {
    faults.Add(
        ValidateSeconds("evaluation.every_seconds", policy.every_seconds()));
  }
  if (policy.has_max_lag()) {
    faults.Add(
        RequireInRange("evaluation.max_lag", policy.max_lag(), 0, kMaxSteps));
  }
  return faults;
}

Faults ValidateSummary(const job::SummaryPolicy& policy) {
  Faults faults;
  if (policy.has_every_steps()) {
    faults.Add(RequireInRange("summary.every_steps", policy.every_steps(), 1,
                              kMaxSteps));
  }
  if (policy.has_every_seconds()) {
    faults.Add(
        ValidateSeconds("summary.every_seconds", policy.every_seconds()));
  }
  return faults;
}

}  // namespace

void FillEvaluationPolicies(job::Job& job) {
  if (!job.summary().has_every_steps()) {
    PARASOL_SET_DEFAULT(*job.mutable_summary(), every_seconds, 10.0);
  }
  if (job.end().has_early_stopping()) {
    job::EarlyStopping& policy = *job.mutable_end()->mutable_early_stopping();
    FillMetric(policy);
    PARASOL_SET_DEFAULT(policy, patience, 0);
    PARASOL_SET_DEFAULT(policy, min_delta, 0.0);
  }
  if (job.checkpoint().has_keep_best()) {
    FillMetric(*job.mutable_checkpoint()->mutable_keep_best());
  }
  if (job.optimizer().has_reduce_on_plateau()) {
    job::ReduceOnPlateau& policy =
        *job.mutable_optimizer()->mutable_reduce_on_plateau();
    FillMetric(policy);
    PARASOL_SET_DEFAULT(policy, factor, 0.1);
    PARASOL_SET_DEFAULT(policy, patience, 10);
    PARASOL_SET_DEFAULT(policy, min_delta, 1e-4);
    PARASOL_SET_DEFAULT(policy, cooldown, 0);
    PARASOL_SET_DEFAULT(policy, min_rate, 0.0);
  }
}

absl::Status ValidateSeconds(absl::string_view path, double seconds) {
  RETURN_IF_ERROR(RequirePositive(path, seconds));
  if (seconds <= kMaxSeconds) return absl::OkStatus();
  return Fault(path, absl::StrCat(seconds, " is more than ", kMaxSeconds));
}

Faults ValidateEvaluationPolicies(
    const job::Job& job,
    const std::optional<std::vector<OutputSpec>>& outputs) {
  Faults faults;
  if (job.has_evaluation()) faults.Add(ValidateTimes(job));
  faults.Add(ValidateSummary(job.summary()));
  if (job.end().has_early_stopping()) {
    faults.Add(ValidateEarlyStopping(job, outputs));
  }
  if (job.checkpoint().has_keep_best()) {
    faults.Add(ValidateMetric("checkpoint.keep_best",
                              job.checkpoint().keep_best(), job, outputs));
  }
  for (int i = 0; i < job.model().layer_size(); ++i) {
    if (!job.model().layer(i).optimizer().has_reduce_on_plateau()) continue;
    faults.Add(
        Fault(absl::StrCat("model.layer[", i, "].optimizer.reduce_on_plateau"),
              "a layer's own rate is not reduced; remove it"));
  }
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    if (!job.model().sparse_table(i).optimizer().has_reduce_on_plateau()) {
      continue;
    }
    faults.Add(Fault(
        absl::StrCat("model.sparse_table[", i, "].optimizer.reduce_on_plateau"),
        "a table's own rate is not reduced; remove it"));
  }
  if (job.optimizer().has_reduce_on_plateau()) {
    faults.Add(ValidateReduceOnPlateau(job, outputs));
  }
  return faults;
}

}  // namespace parasol
