#include "deploy/local/last_error.h"

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Lines = std::vector<absl::string_view>;

struct ParsedLine {
  bool is_error = false;
  bool is_reason = false;  // main()'s last line
  std::string message;
};

ParsedLine FromJson(const nlohmann::json& json) {
  const auto text = [&json](const char* key) -> std::string {
    return json.contains(key) && json[key].is_string() ? json[key] : "";
  };
  const std::string severity = text("severity");
  return {.is_error = severity == "ERROR" || severity == "FATAL",
          .is_reason = json.contains("exit_code"),
          .message = text("message")};
}

// "E1120 23:17:03.123456 worker/1 loop.cc:42] message", or base/log.h's JSON;
// nullopt for any other line.
std::optional<ParsedLine> ParseLogLine(absl::string_view line) {
  const size_t bracket = line.find("] ");
  if (line.size() > 1 && absl::StrContains("IWEF", line[0]) &&
      absl::ascii_isdigit(line[1]) && bracket != absl::string_view::npos) {
    return ParsedLine{.is_error = line[0] == 'E' || line[0] == 'F',
                      .message = std::string(line.substr(bracket + 2))};
  }
  const absl::StatusOr<nlohmann::json> json = ParseStrictJson(line);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  return FromJson(*json);
}

}  // namespace

std::string LastError(absl::string_view log, absl::string_view binary) {
  const Lines lines = absl::StrSplit(log, '\n', absl::SkipWhitespace());
  const std::string prefix = absl::StrCat(binary, ": ");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::string_view message = *line;
    if (absl::ConsumePrefix(&message, prefix)) return std::string(message);
    const std::optional<ParsedLine> parsed = ParseLogLine(*line);
    if (parsed.has_value() && parsed->is_reason) return parsed->message;
  }
  std::string last;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::optional<ParsedLine> log_line = ParseLogLine(*line);
    if (log_line.has_value() && log_line->is_error) return log_line->message;
    if (!log_line.has_value() && last.empty()) last = std::string(*line);
  }
  return last;
}

}  // namespace parasol
