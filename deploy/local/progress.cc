#include "deploy/local/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deploy/local/run_result.h"

namespace parasol {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(10);
// A rate that is measured over a standstill says nothing of what comes after.
constexpr absl::Duration kStandstill = absl::Seconds(5);
// A shorter wait is not worth a number.
constexpr absl::Duration kShownWait = absl::Seconds(5);

// " for 80 s"; empty for less than kShownWait.
std::string ForHowLong(const wire::JobStatus& status) {
  const int64_t seconds = status.waited().seconds();
  if (seconds < absl::ToInt64Seconds(kShownWait)) return "";
  if (seconds < 100) return absl::StrCat(" for ", seconds, " s");
  return absl::StrCat(" for ", seconds / 60, " min");
}

std::string Waiting(const wire::JobStatus& status, const std::string& what) {
  std::string text = what;
  if (!status.missing_task().empty()) {
    absl::StrAppend(&text, ", waiting for ",
                    absl::StrJoin(status.missing_task(), ", "),
                    ForHowLong(status));
  }
  if (!status.trouble().empty()) {
    absl::StrAppend(&text, ": ", status.trouble());
  }
  return text;
}

std::string Left(absl::Duration left) {
  const int64_t seconds =
      absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1)));
  if (seconds < 100) return absl::StrCat("  ", seconds, " s left");
  return absl::StrCat("  ", (seconds + 59) / 60, " min left");
}

std::string Step(const wire::JobStatus& status) {
  std::string text = absl::StrCat("step ", WithThousands(status.global_step()));
  if (status.end_step() <= 0) return text;
  if (status.global_step() > status.end_step()) {
    // The checkpoint that the run goes on from is of a longer job.
    return absl::StrCat(text, ", beyond the job's end at step ",
                        WithThousands(status.end_step()));
  }
  return absl::StrCat(text, "/", WithThousands(status.end_step()), " (",
                      100 * status.global_step() / status.end_step(), " %)");
}

// The tasks that a standstill waits for; empty: the chief names none.
std::string WaitsFor(const wire::JobStatus& status) {
  const auto& tasks = status.missing_task().empty() ? status.awaited_task()
                                                    : status.missing_task();
  return absl::StrJoin(tasks, ", ");
}

// What the job waits for, or how long it takes. A missing ps holds up every
// worker; a worker that others await is named only once it holds them up, as
// the slowest of bounded staleness changes all the time.
std::string Outlook(const wire::JobStatus& status,
                    std::optional<absl::Duration> left) {
  const std::string tasks = WaitsFor(status);
  const bool waits = !status.missing_task().empty() || !left.has_value();
  if (waits && !tasks.empty()) {
    return absl::StrCat("  waiting for ", tasks, ForHowLong(status));
  }
  // What keeps a checkpoint from being written keeps the job from its end.
  if (!status.trouble().empty()) {
    return absl::StrCat("  ", status.trouble(), ForHowLong(status));
  }
  return left.has_value() ? Left(*left) : "";
}

// The most important first: a narrow terminal shows the beginning.
std::string Training(const wire::JobStatus& status,
                     const std::optional<EvaluationLine>& evaluation,
                     const std::string& outlook) {
  std::string line = absl::StrCat(Step(status), outlook);
  if (evaluation.has_value() && !evaluation->metrics.empty()) {
    const auto& [name, value] = evaluation->metrics.front();
    absl::StrAppend(&line, "  ", name, " ", MetricText(name, value),
                    " at step ", WithThousands(evaluation->global_step));
  }
  if (status.has_loss()) {
    absl::StrAppendFormat(&line, "  loss %.4f", status.loss());
  }
  if (status.examples_per_second() > 0) {
    absl::StrAppend(&line, "  ",
                    WithThousands(std::llround(status.examples_per_second())),
                    " examples/s");
  }
  return line;
}

}  // namespace

void StepRate::Observe(int64_t global_step, absl::Time now) {
  if (!observed_.empty() && global_step < observed_.back().second) {
    observed_.clear();
  }
  if (observed_.empty() || observed_.back().second != global_step) {
    last_change_ = now;
  }
  observed_.emplace_back(now, global_step);
  while (observed_.front().first < now - kRateWindow) observed_.pop_front();
}

std::optional<absl::Duration> StepRate::TimeTo(int64_t end_step) const {
  if (observed_.empty()) return std::nullopt;
  const auto& [first_time, first_step] = observed_.front();
  const auto& [last_time, last_step] = observed_.back();
  if (last_step == first_step || last_time == first_time) return std::nullopt;
  if (last_time - last_change_ >= kStandstill) return std::nullopt;
  const double steps_left = std::max<int64_t>(0, end_step - last_step);
  return (last_time - first_time) * (steps_left / (last_step - first_step));
}

void MeanStepRate::Observe(const wire::JobStatus& status, absl::Time now) {
  const bool is_training = status.phase() == wire::TRAINING;
  if (!first_.has_value() && is_training) {
    first_ = last_ = Look{now, status.global_step()};
  }
  // The step that ends the training is seen in a later phase.
  if (is_training || status.global_step() > last_.global_step) {
    last_ = {now, status.global_step()};
  }
}

double MeanStepRate::steps_per_second() const {
  if (!first_.has_value() || last_.time <= first_->time) return 0;
  return std::max<int64_t>(0, last_.global_step - first_->global_step) /
         absl::ToDoubleSeconds(last_.time - first_->time);
}

std::string StartLine(const wire::JobStatus& status) {
  if (status.resumed_from().empty()) return "";
  return status.was_complete()
             ? absl::StrCat("nothing to do: complete at step ",
                            WithThousands(status.resumed_step()), ", ",
                            status.resumed_from())
             : absl::StrCat("resuming at step ",
                            WithThousands(status.resumed_step()), " from ",
                            status.resumed_from());
}

std::string ProgressLine(const wire::JobStatus* status,
                         const std::optional<EvaluationLine>& evaluation,
                         std::optional<absl::Duration> left) {
  if (status == nullptr) return "starting";
  switch (status->phase()) {
    case wire::WAITING_FOR_PS:
      return Waiting(*status, "starting");
    case wire::LOADING:
      return Waiting(*status, "loading the variables");
    case wire::TRAINING:
      return Training(*status, evaluation, Outlook(*status, left));
    case wire::FINISHING:
    case wire::COMPLETE:
      if (status->was_complete()) return "complete";
      return Training(*status, evaluation, Waiting(*status, "  finishing"));
    case wire::FAILED:
      return "failed";
    default:
      return "unknown phase";
  }
}

}  // namespace parasol
