#include "tool/status/status_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cluster/progress/followed_text.h"
#include "cluster/progress/status_json.h"
#include "cluster/progress/task_notes.h"
#include "deploy/local/run_result.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

std::string PhaseName(const wire::JobStatus& status) {
  return wire::JobPhase_Name(status.phase());
}

Json MetricsJson(const EvaluationLine& evaluation) {
  Json json = {{"global_step", evaluation.global_step}};
  for (const auto& [name, value] : evaluation.metrics) {
    json[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
  }
  json["loss"] =
      std::isfinite(evaluation.loss) ? Json(evaluation.loss) : Json(nullptr);
  return json;
}

Json BestJson(const BestCheckpoint& best) {
  return {
      {"metric", best.metric},
      {"value", std::isfinite(best.value) ? Json(best.value) : Json(nullptr)},
      {"global_step", best.global_step},
      {"checkpoint", best.path}};
}

double SecondsOf(const google::protobuf::Duration& duration) {
  return duration.seconds() + duration.nanos() / 1e9;
}

// "12.3 steps/s, of a step input 0.1 ms, pull 0.4 ms, …".
std::string PaceText(const wire::WorkerPace& pace) {
  std::string text = absl::StrFormat("%.3g steps/s", pace.steps_per_second());
  const wire::StepTimes& step = pace.step();
  const std::pair<const char*, const google::protobuf::Duration*> parts[] = {
      {"input", &step.input()},
      {"pull", &step.pull()},
      {"compute", &step.compute()},
      {"push", &step.push()},
      {"wait", &step.wait()}};
  const char* separator = ": ";
  for (const auto& [name, time] : parts) {
    absl::StrAppendFormat(&text, "%s%s %.3g ms", std::exchange(separator, ", "),
                          name, 1e3 * SecondsOf(*time));
  }
  return text;
}

}  // namespace

void StatusReport::Observe(const wire::JobStatus& status,
                           const Evaluations& evaluations, absl::Time now) {
  const bool is_first = tasks_.empty();
  for (const wire::TaskStatus& task : status.task()) {
    const auto [state, is_new] = tasks_.try_emplace(NameOfTask(task));
    if (!is_new && state->second.alive == task.alive()) continue;
    state->second = {
        .alive = task.alive(), .since = now, .has_changed = !is_first};
  }
  status_ = status;
  evaluations_ = evaluations;
  now_ = now;
  rate_.Observe(status.global_step(), now);
  mean_rate_.Observe(status, now);
}

std::optional<double> StatusReport::StepsPerSecond() const {
  const double rate = mean_rate_.steps_per_second();
  return rate > 0 ? std::optional<double>(rate) : std::nullopt;
}

std::string StatusReport::Progress() const {
  const std::optional<absl::Duration> left =
      status_.phase() == wire::TRAINING ? rate_.TimeTo(status_.end_step())
                                        : std::nullopt;
  return ProgressLine(&status_, evaluations_.newest, left);
}

std::string StatusReport::EvaluationLines() const {
  std::string text;
  if (status_.has_evaluated_step() || status_.due_evaluations() > 0) {
    absl::StrAppend(
        &text, "evaluated   ",
        status_.has_evaluated_step()
            ? absl::StrCat("to step ", WithThousands(status_.evaluated_step()))
            : "nothing yet");
    if (status_.due_evaluations() > 0) {
      absl::StrAppend(&text, ", ", WithThousands(status_.due_evaluations()),
                      " due without a result");
    }
    if (status_.has_awaited_evaluation()) {
      absl::StrAppend(&text, ", the job waits for that of step ",
                      WithThousands(status_.awaited_evaluation()));
    }
    text += '\n';
  }
  if (const auto& best = evaluations_.best) {
    absl::StrAppend(&text, "best        ", best->metric, " ",
                    MetricText(best->metric, best->value), " at step ",
                    WithThousands(best->global_step), ", ", best->path, "\n");
  }
  return text;
}

std::string StatusReport::ToText() const {
  std::string text = absl::StrCat(
      "job         ", absl::AsciiStrToLower(PhaseName(status_)), ": ",
      status_.phase() == wire::FAILED ? status_.failure() : Progress(), "\n");
  absl::StrAppend(&text, "run         ", status_.run_id(), "\n");
  if (const auto rate = StepsPerSecond()) {
    absl::StrAppendFormat(&text, "rate        %.4g steps/s\n", *rate);
  }
  absl::StrAppend(
      &text, "checkpoint  ",
      status_.checkpoint().empty() ? "none yet" : status_.checkpoint(), "\n");
  if (status_.finding_size() > 0 && !HasFailed()) {
    absl::StrAppend(&text, "bound by    ", status_.finding(0).text(), "\n");
  }
  if (status_.has_followed()) {
    absl::StrAppend(&text, "data        ",
                    status_.followed().has_waited()
                        ? absl::StrCat(WaitForData(status_.followed()), "; ")
                        : "",
                    FilesOfData(status_.followed()), "\n");
  }
  text += EvaluationLines();
  if (!status_.missing_task().empty()) {
    absl::StrAppend(&text, "waits for   ",
                    absl::StrJoin(status_.missing_task(), ", "), "\n");
  }
  if (!status_.awaited_task().empty()) {
    absl::StrAppend(&text, "awaited     ",
                    absl::StrJoin(status_.awaited_task(), ", "), "\n");
  }
  if (!status_.trouble().empty()) {
    absl::StrAppend(&text, "trouble     ", status_.trouble(), "\n");
  }
  for (const std::string& line : status_.warning()) {
    absl::StrAppend(&text, "warning     ", line, "\n");
  }
  for (const wire::TaskStatus& task : status_.task()) {
    if (task.slow().empty()) continue;
    absl::StrAppend(&text, "slow        ", NameOfTask(task), ": ", task.slow(),
                    "\n");
  }
  for (const wire::TaskStatus& task : status_.task()) {
    if (task.acted_by().empty()) continue;
    absl::StrAppend(&text, "acting      ", NameOfTask(task), ": ",
                    task.acted_by(), " acts for it; start it again\n");
  }
  for (const wire::TaskStatus& task : status_.task()) {
    if (task.doubled().empty()) continue;
    absl::StrAppend(&text, "doubled     ", NameOfTask(task), ": ",
                    task.doubled(), "\n");
  }
  for (const wire::AbsentTask& task : status_.absent_task()) {
    absl::StrAppend(&text, "without     ", task.task(),
                    task.was_there() ? ", gone for " : ", not come for ",
                    task.absent().seconds(), "s\n");
  }
  for (const wire::TaskStatus& task : status_.task()) {
    absl::StrAppendFormat(&text, "%-11s %-10s", NameOfTask(task),
                          StateOf(task, status_));
    const TaskState& state = tasks_.at(NameOfTask(task));
    if (state.has_changed) {
      absl::StrAppend(&text, " since ",
                      absl::FormatDuration(
                          absl::Floor(now_ - state.since, absl::Seconds(1))));
    }
    if (!task.address().empty()) absl::StrAppend(&text, " ", task.address());
    if (!task.metrics_address().empty()) {
      absl::StrAppend(&text, "  metrics ", task.metrics_address());
    }
    if (task.has_pace()) absl::StrAppend(&text, "  ", PaceText(task.pace()));
    text += '\n';
  }
  return text;
}

std::string StatusReport::ToJson() const {
  Json json = StatusJson(status_);
  const std::optional<double> rate = StepsPerSecond();
  json["steps_per_second"] = rate.has_value() ? Json(*rate) : Json(nullptr);
  json["evaluation"] = evaluations_.newest.has_value()
                           ? MetricsJson(*evaluations_.newest)
                           : Json(nullptr);
  json["best"] = evaluations_.best.has_value() ? BestJson(*evaluations_.best)
                                               : Json(nullptr);
  for (int i = 0; i < status_.task_size(); ++i) {
    const TaskState& state = tasks_.at(NameOfTask(status_.task(i)));
    json["tasks"][i]["seconds_in_state"] =
        state.has_changed ? Json(absl::ToDoubleSeconds(now_ - state.since))
                          : Json(nullptr);
  }
  return absl::StrCat(json.dump(-1, ' ', false, Json::error_handler_t::replace),
                      "\n");
}

std::string StatusReport::TakeChange() {
  std::string state = PhaseName(status_);
  std::string line = absl::StrCat(absl::AsciiStrToLower(state), ": ",
                                  HasFailed() ? status_.failure() : Progress());
  if (status_.finding_size() > 0) {
    const wire::Finding& finding = status_.finding(0);
    absl::StrAppend(&state, " ", finding.kind(), " ", finding.task());
    if (!HasFailed()) absl::StrAppend(&line, "; bound by ", finding.text());
  }
  for (const wire::TaskStatus& task : status_.task()) {
    const std::string of_task = StateOf(task, status_);
    absl::StrAppend(&state, " ", NameOfTask(task), " ", of_task);
    if (of_task == "alive" || of_task == "awaited") continue;
    absl::StrAppend(&line, "; ", NameOfTask(task), " ", of_task);
  }
  absl::StrAppend(&state, " ", status_.checkpoint());
  if (state == std::exchange(told_, state)) return "";
  return absl::StrCat(line, "\n");
}

bool StatusReport::IsOver() const {
  return status_.phase() == wire::COMPLETE || HasFailed();
}

}  // namespace parasol
