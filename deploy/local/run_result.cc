#include "deploy/local/run_result.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

absl::string_view Name(RunResult::Status status) {
  switch (status) {
    case RunResult::Status::kSucceeded:
      return "succeeded";
    case RunResult::Status::kFailed:
      return "failed";
    case RunResult::Status::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

double Rounded(double value, double unit) {
  return std::round(value / unit) * unit;
}

// A line for each metric; the first one says of which model.
std::string EvaluationLines(const EvaluationLine& evaluation) {
  std::string model = absl::StrFormat(" (loss %.4f, step %s)", evaluation.loss,
                                      WithThousands(evaluation.global_step));
  std::string lines;
  for (const auto& [name, value] : evaluation.metrics) {
    const bool is_share = name == "accuracy";
    absl::StrAppendFormat(&lines, "  %-11s %s%s%s\n", absl::StrCat(name, ":"),
                          MetricText(name, value),
                          is_share ? " of the evaluation examples" : "",
                          std::exchange(model, ""));
  }
  return lines;
}

}  // namespace

std::string ToJson(const RunResult& result) {
  nlohmann::ordered_json json;
  json["status"] = std::string(Name(result.status));
  if (result.status == RunResult::Status::kFailed) {
    json["error"] = result.error;
  }
  json["global_step"] = result.global_step;
  json["examples_per_second"] = Rounded(result.examples_per_second, 1);
  json["seconds"] = absl::ToInt64Milliseconds(result.elapsed) / 1000.0;
  json["eval"] = nullptr;
  if (result.evaluation.has_value()) {
    nlohmann::ordered_json evaluation;
    for (const auto& [name, value] : result.evaluation->metrics) {
      evaluation[name] = value;
    }
    evaluation["loss"] = result.evaluation->loss;
    evaluation["global_step"] = result.evaluation->global_step;
    json["eval"] = evaluation;
  }
  json["best"] = nullptr;
  if (result.best.has_value()) {
    json["best"] = {{"metric", result.best->metric},
                    {"value", result.best->value},
                    {"global_step", result.best->global_step},
                    {"checkpoint", result.best->path}};
  }
  json["checkpoint"] = result.checkpoint;
  json["metrics"] = nlohmann::ordered_json::object();
  for (const auto& [task, url] : result.metrics) json["metrics"][task] = url;
  // A path or a log line need not be UTF-8.
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string Summary(const RunResult& result) {
  std::string text =
      result.was_complete
          ? absl::StrCat("Nothing to do: the job was complete at step ",
                         WithThousands(result.global_step), ".\n")
          : absl::StrFormat("Job %s at step %s after %.1f s.\n",
                            Name(result.status),
                            WithThousands(result.global_step),
                            absl::ToDoubleSeconds(result.elapsed));
  if (!result.error.empty()) {
    absl::StrAppend(&text, "  error:      ", result.error, "\n");
  }
  if (result.evaluation.has_value()) {
    absl::StrAppend(&text, EvaluationLines(*result.evaluation));
  }
  if (result.examples_per_second > 0) {
    absl::StrAppend(&text, "  speed:      ",
                    WithThousands(std::llround(result.examples_per_second)),
                    " examples per second\n");
  }
  if (!result.checkpoint.empty()) {
    absl::StrAppend(&text, "  checkpoint: ", result.checkpoint, "\n");
  }
  if (result.best.has_value()) {
    absl::StrAppend(&text, "  best:       ", result.best->metric, " ",
                    MetricText(result.best->metric, result.best->value),
                    " at step ", WithThousands(result.best->global_step), ", ",
                    result.best->path, "\n");
  }
  return text;
}

std::string WithThousands(int64_t number) {
  std::string digits = absl::StrCat(number);
  const int first = number < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(i, ",");
  }
  return digits;
}

}  // namespace parasol
