#include "deploy/local/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/progress/task_notes.h"
#include "deploy/local/run_result.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

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

// The workers that are slow, and the tasks without which the training goes on.
std::string Trouble(const wire::JobStatus& status) {
  std::vector<std::string> slow, absent;
  for (const wire::TaskStatus& task : status.task()) {
    if (!task.slow().empty()) slow.push_back(NameOfTask(task));
  }
  for (const wire::AbsentTask& task : status.absent_task()) {
    absent.push_back(task.task());
  }
  std::string text;
  if (!slow.empty()) {
    absl::StrAppend(&text, "  slow: ", absl::StrJoin(slow, ", "));
  }
  if (!absent.empty()) {
    absl::StrAppend(&text, "  without ", absl::StrJoin(absent, ", "));
  }
  return text;
}

// The most important first: a narrow terminal shows the beginning.
std::string Training(const wire::JobStatus& status,
                     const std::optional<EvaluationLine>& evaluation,
                     const std::string& outlook) {
  std::string line = absl::StrCat(Step(status), outlook, Trouble(status));
  // A model that has not been trained says nothing.
  if (evaluation.has_value() && evaluation->global_step > 0 &&
      !evaluation->metrics.empty()) {
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

absl::Duration MeanStepRate::observed() const {
  return first_.has_value() ? last_.time - first_->time : absl::ZeroDuration();
}

std::optional<double> LastTrainingRate(absl::string_view jsonl) {
  jsonl = jsonl.substr(0, jsonl.rfind('\n') + 1);
  const std::vector<absl::string_view> lines =
      absl::StrSplit(jsonl, '\n', absl::SkipEmpty());
  if (lines.empty()) return std::nullopt;
  const auto json =
      nlohmann::json::parse(lines.back().begin(), lines.back().end(),
                            /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto rate = json.find("examples_per_second");
  if (rate == json.end() || !rate->is_number()) return std::nullopt;
  return rate->get<double>();
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
