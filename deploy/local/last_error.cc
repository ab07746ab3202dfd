#include "deploy/local/last_error.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Lines = std::vector<absl::string_view>;

// "E1120 23:17:03.123456 worker/1 loop.cc:42] message", or base/log.h's JSON.
std::optional<std::string> ErrorMessage(absl::string_view line) {
  const size_t bracket = line.find("] ");
  if (line.size() > 1 && (line[0] == 'E' || line[0] == 'F') &&
      absl::ascii_isdigit(line[1]) && bracket != absl::string_view::npos) {
    return std::string(line.substr(bracket + 2));
  }
  if (line.substr(0, 1) != "{") return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(
      line.begin(), line.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  const std::string severity = json.is_object() && json.contains("severity") &&
                                       json["severity"].is_string()
                                   ? json["severity"]
                                   : "";
  if (severity != "ERROR" && severity != "FATAL") return std::nullopt;
  if (!json.contains("message") || !json["message"].is_string()) {
    return std::nullopt;
  }
  return json["message"];
}

}  // namespace

std::string LastError(absl::string_view log, absl::string_view binary) {
  const Lines lines = absl::StrSplit(log, '\n', absl::SkipWhitespace());
  const std::string prefix = absl::StrCat(binary, ": ");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::string_view message = *line;
    if (absl::ConsumePrefix(&message, prefix)) return std::string(message);
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (auto message = ErrorMessage(*line)) return *std::move(message);
  }
  return lines.empty() ? "" : std::string(lines.back());
}

}  // namespace parasol
