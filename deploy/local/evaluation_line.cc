#include "deploy/local/evaluation_line.h"

#include <limits>
#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

std::optional<EvaluationLine> ParseLine(absl::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(
      line.begin(), line.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("loss")) return std::nullopt;
  const auto is_number = [&json](const char* key) {
    return json.contains(key) && json[key].is_number();
  };
  if (!is_number("global_step") || !is_number("accuracy")) return std::nullopt;
  EvaluationLine evaluation;
  evaluation.global_step = json["global_step"];
  evaluation.accuracy = json["accuracy"];
  // JSON has no NaN: a loss that is not finite is null.
  evaluation.loss = is_number("loss")
                        ? double{json["loss"]}
                        : std::numeric_limits<double>::quiet_NaN();
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

}  // namespace parasol
