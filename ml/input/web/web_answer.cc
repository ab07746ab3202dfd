#include "ml/input/web/web_answer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// No server has a larger file, and sums of two such numbers fit.
constexpr uint64_t kMostFileBytes = std::numeric_limits<int64_t>::max();
constexpr size_t kMostVersionBytes = 1024;

// A number without sign and blanks.
std::optional<uint64_t> ParseBytes(absl::string_view text) {
  uint64_t bytes = 0;
  if (text.empty() ||
      !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &bytes) || bytes > kMostFileBytes) {
    return std::nullopt;
  }
  return bytes;
}

// Takes the text in front of the first `end`, and that, from `text`.
std::optional<absl::string_view> Take(absl::string_view& text, char end) {
  const size_t at = text.find(end);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

absl::Status Contradiction(absl::string_view name, absl::string_view value) {
  return absl::UnavailableError(
      absl::StrCat("the head of the server's answer is no good: ", name, ": ",
                   ShownText(value)));
}

}  // namespace

std::optional<WebRange> ParseWebRange(absl::string_view text) {
  if (!absl::StartsWithIgnoreCase(text, "bytes ")) return std::nullopt;
  text.remove_prefix(absl::string_view("bytes ").size());
  const std::optional<absl::string_view> part = Take(text, '/');
  if (!part.has_value()) return std::nullopt;
  const std::optional<uint64_t> total = ParseBytes(text);
  if (!total.has_value()) return std::nullopt;
  if (*part == "*") return WebRange{.begin = 0, .size = 0, .total = *total};
  absl::string_view last_text = *part;
  const std::optional<absl::string_view> begin_text = Take(last_text, '-');
  if (!begin_text.has_value()) return std::nullopt;
  const std::optional<uint64_t> begin = ParseBytes(*begin_text);
  const std::optional<uint64_t> last = ParseBytes(last_text);
  if (!begin.has_value() || !last.has_value() || *begin > *last ||
      *last >= *total) {
    return std::nullopt;
  }
  return WebRange{.begin = *begin, .size = *last - *begin + 1, .total = *total};
}

absl::Status WebAnswer::AddLine(absl::string_view line) {
  // curl passes lines of what follows a body in chunks, too.
  if (absl::StartsWith(line, "HTTP/")) {
    *this = WebAnswer();
    const size_t blank = std::min(line.find(' '), line.size());
    constexpr size_t kDigits = 3;
    const auto status =
        ParseBytes(absl::ClippedSubstr(line, blank + 1, kDigits));
    status_ = static_cast<int>(status.value_or(0));
  }
  bytes_ += line.size();
  if (bytes_ > kMostBytes) {
    return absl::UnavailableError(
        absl::StrCat("the head of the server's answer has more than ",
                     kMostBytes, " bytes"));
  }
  absl::string_view value = line;
  const std::optional<absl::string_view> name = Take(value, ':');
  if (!name.has_value()) return absl::OkStatus();
  return AddField(*name, absl::StripAsciiWhitespace(value));
}

absl::Status WebAnswer::AddField(absl::string_view name,
                                 absl::string_view value) {
  if (absl::EqualsIgnoreCase(name, "Content-Length")) {
    const std::optional<uint64_t> length = ParseBytes(value);
    if (!length.has_value() || (length_.has_value() && *length_ != *length)) {
      return Contradiction(name, value);
    }
    length_ = length;
  } else if (absl::EqualsIgnoreCase(name, "Content-Range")) {
    if (range_.has_value()) return Contradiction(name, value);
    range_ = ParseWebRange(value);
    if (!range_.has_value()) return Contradiction(name, value);
  } else if (absl::EqualsIgnoreCase(name, "ETag")) {
    if (value.size() > kMostVersionBytes) return Contradiction(name, value);
    etag_ = std::string(value);
  } else if (absl::EqualsIgnoreCase(name, "Last-Modified")) {
    if (value.size() > kMostVersionBytes) return Contradiction(name, value);
    last_modified_ = std::string(value);
  }
  return absl::OkStatus();
}

}  // namespace parasol
