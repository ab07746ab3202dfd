#include "deploy/local/evaluation.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

std::optional<Evaluation> ParseLine(absl::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(
      line.begin(), line.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  const auto is_number = [&json](const char* key) {
    return json.contains(key) && json[key].is_number();
  };
  if (!is_number("global_step") || !is_number("accuracy") ||
      !is_number("loss")) {
    return std::nullopt;
  }
  return Evaluation{.global_step = json["global_step"],
                    .accuracy = json["accuracy"],
                    .loss = json["loss"]};
}

}  // namespace

std::optional<Evaluation> LastEvaluation(absl::string_view jsonl) {
  jsonl = jsonl.substr(0, jsonl.rfind('\n') + 1);
  const std::vector<absl::string_view> lines = absl::StrSplit(jsonl, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const auto evaluation = ParseLine(*line)) return evaluation;
  }
  return std::nullopt;
}

}  // namespace parasol
