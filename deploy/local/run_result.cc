#include "deploy/local/run_result.h"

#include <cmath>

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
    json["eval"] = {{"accuracy", result.evaluation->accuracy},
                    {"loss", result.evaluation->loss},
                    {"global_step", result.evaluation->global_step}};
  }
  json["checkpoint"] = result.checkpoint;
  json["metrics"] = nlohmann::ordered_json::object();
  for (const auto& [task, url] : result.metrics) json["metrics"][task] = url;
  // A path or a log line need not be UTF-8.
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string Summary(const RunResult& result) {
  std::string text = absl::StrFormat(
      "Job %s at step %s after %.1f s.\n", Name(result.status),
      WithThousands(result.global_step), absl::ToDoubleSeconds(result.elapsed));
  if (!result.error.empty()) {
    absl::StrAppend(&text, "  error:      ", result.error, "\n");
  }
  if (result.evaluation.has_value()) {
    absl::StrAppendFormat(&text,
                          "  accuracy:   %.2f %% of the evaluation examples "
                          "(loss %.4f, step %s)\n",
                          100 * result.evaluation->accuracy,
                          result.evaluation->loss,
                          WithThousands(result.evaluation->global_step));
  }
  if (result.examples_per_second > 0) {
    absl::StrAppend(&text, "  speed:      ",
                    WithThousands(std::llround(result.examples_per_second)),
                    " examples per second\n");
  }
  if (!result.checkpoint.empty()) {
    absl::StrAppend(&text, "  checkpoint: ", result.checkpoint, "\n");
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
