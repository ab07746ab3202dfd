#include "deploy/local/evaluation_line.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

// Every other key is a metric.
constexpr const char* kKeys[] = {"global_step", "loss",       "examples",
                                 "seconds",     "checkpoint", "final",
                                 "run_id",      "chief_epoch"};

// JSON has no NaN: what is not finite is null.
double NumberOf(const Json& json) {
  return json.is_number() ? json.get<double>()
                          : std::numeric_limits<double>::quiet_NaN();
}

std::optional<EvaluationLine> ParseLine(absl::string_view line) {
  const absl::StatusOr<Json> parsed = ParseOrderedJson(line);
  if (!parsed.ok() || !parsed->is_object()) return std::nullopt;
  const Json& json = *parsed;
  if (!json.contains("loss")) return std::nullopt;
  if (!json.contains("global_step") || !json["global_step"].is_number()) {
    return std::nullopt;
  }
  EvaluationLine evaluation;
  evaluation.global_step = json["global_step"];
  evaluation.loss = NumberOf(json["loss"]);
  for (const auto& [key, value] : json.items()) {
    const bool is_metric =
        std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys);
    if (is_metric) evaluation.metrics.emplace_back(key, NumberOf(value));
  }
  return evaluation;
}

}  // namespace

std::optional<EvaluationLine> LastEvaluationLine(absl::string_view jsonl) {
  jsonl = jsonl.substr(0, jsonl.rfind('\n') + 1);
  const std::vector<absl::string_view> lines = absl::StrSplit(jsonl, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const auto evaluation = ParseLine(*line)) return evaluation;
  }
  return std::nullopt;
}

std::string MetricText(absl::string_view metric, double value) {
  if (metric == "accuracy") return absl::StrFormat("%.2f %%", 100 * value);
  return absl::StrFormat("%.4f", value);
}

}  // namespace parasol
