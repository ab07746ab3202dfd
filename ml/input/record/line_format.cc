#include "ml/input/record/line_format.h"

#include <algorithm>

namespace parasol {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsLineBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

absl::string_view Trimmed(absl::string_view line) {
  while (!line.empty() && IsLineBlank(line.back())) line.remove_suffix(1);
  while (!line.empty() && IsLineBlank(line.front())) line.remove_prefix(1);
  return line;
}

size_t BehindByteOrderMark(absl::string_view text) {
  const bool has_mark = text.substr(0, kByteOrderMark.size()) == kByteOrderMark;
  return has_mark ? kByteOrderMark.size() : 0;
}

absl::StatusOr<std::optional<size_t>> LineFormat::Begin(
    const std::string& /*path*/, const FilePart& part) {
  return std::optional<size_t>(BehindByteOrderMark(part.bytes));
}

FoundRecord LineFormat::Find(const FilePart& part, size_t at) const {
  const absl::string_view rest = part.From(at);
  size_t size = rest.find('\n');
  if (size == absl::string_view::npos) {
    if (!part.HasEnd()) return {.kind = FoundRecord::Kind::kCutOff};
    size = rest.size();
  }
  const absl::string_view line = Trimmed(rest.substr(0, size));
  const bool is_record = !line.empty() && line.front() != comment_;
  return {
      .kind = is_record ? FoundRecord::Kind::kWhole : FoundRecord::Kind::kNone,
      .offset = at + (line.data() - rest.data()),
      .length = line.size(),
      .next = std::min(at + size + 1, part.file_bytes)};
}

}  // namespace parasol
