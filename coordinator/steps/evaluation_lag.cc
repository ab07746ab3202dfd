#include "coordinator/steps/evaluation_lag.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr char kNotThere[] = "; evaluator/0 is not there: start it";

}  // namespace

EvaluationLag::EvaluationLag(const job::EvaluationPolicy& policy,
                             int64_t first_step, int64_t evaluated_to,
                             absl::Duration limit)
    : every_steps_(policy.every_steps()),
      has_times_(policy.has_every_steps() || policy.has_every_seconds()),
      max_lag_(policy.has_max_lag() ? std::optional<int64_t>(policy.max_lag())
                                    : std::nullopt),
      limit_(limit),
      newest_(first_step),
      evaluated_to_(evaluated_to) {}

void EvaluationLag::Written(int64_t step) {
  newest_ = std::max(newest_, step);
  if (step > evaluated_to_) unevaluated_.push_back(step);
  since_ = now_;
}

void EvaluationLag::Evaluated(int64_t step) {
  if (step <= evaluated_to_) return;
  evaluated_to_ = step;
  // Earlier checkpoints were left out: the evaluator takes the oldest one
  // first.
  while (!unevaluated_.empty() && unevaluated_.front() <= step) {
    unevaluated_.pop_front();
  }
  has_given_up_ = false;
  since_ = now_;
}

int64_t EvaluationLag::DueAt(int64_t global_step) const {
  const auto written = static_cast<int64_t>(unevaluated_.size());
  if (every_steps_ <= 0) return written;
  // A checkpoint may be written steps after it is due.
  return std::max(written,
                  global_step / every_steps_ -
                      std::max<int64_t>(0, evaluated_to_) / every_steps_);
}

std::optional<std::string> EvaluationLag::Observe(const Look& look) {
  now_ = look.now;
  is_over_ = look.is_over;
  is_failing_ = look.is_failing;
  due_ = has_times_ && look.is_training ? DueAt(look.global_step) : 0;
  const std::optional<int64_t> limit = StepLimit();
  const bool is_waiting =
      look.is_training && IsOver() && limit && look.global_step >= *limit;
  if (!is_waiting || !is_waiting_) since_ = now_;
  is_waiting_ = is_waiting;
  if (is_waiting && waited() >= limit_) {
    has_given_up_ = true;
    is_waiting_ = false;
    return absl::StrCat(
        "no evaluation of step ", unevaluated_.front(), " came within ",
        absl::FormatDuration(limit_),
        ": training goes on without waiting for the evaluator "
        "(evaluation.max_lag), until one comes",
        look.has_evaluator ? "; see the log of evaluator/0" : kNotThere);
  }
  if (due_ < kBehind || has_warned_ || max_lag_) return std::nullopt;
  has_warned_ = true;
  return absl::StrCat(BehindLine(look.global_step),
                      look.has_evaluator ? "" : kNotThere);
}

std::string EvaluationLag::BehindLine(int64_t global_step) const {
  return absl::StrCat(
      "evaluations fall behind: at step ", global_step, " ", due_,
      " are due without a result, and the newest one is ",
      evaluated_to_ < 0 ? "none" : absl::StrCat("of step ", evaluated_to_),
      "; what goes by them comes late. Evaluate less often, or let the job "
      "wait "
      "with evaluation.max_lag");
}

std::optional<int64_t> EvaluationLag::StepLimit() const {
  if (!max_lag_ || has_given_up_ || is_over_) return std::nullopt;
  if (IsOver()) return 0;
  if (every_steps_ <= 0 || is_failing_) return std::nullopt;
  const int64_t intervals = newest_ / every_steps_ + *max_lag_ + 1 -
                            static_cast<int64_t>(unevaluated_.size());
  if (intervals > std::numeric_limits<int64_t>::max() / every_steps_) {
    return std::nullopt;
  }
  return intervals * every_steps_;
}

bool EvaluationLag::IsUnevaluated(int64_t step) const {
  return std::find(unevaluated_.begin(), unevaluated_.end(), step) !=
         unevaluated_.end();
}

std::optional<int64_t> EvaluationLag::awaited() const {
  return is_waiting_ ? std::optional<int64_t>(unevaluated_.front())
                     : std::nullopt;
}

}  // namespace parasol
