#include "ml/input/format/line_records.h"

#include <cstddef>
#include <utility>

#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

absl::string_view Trimmed(absl::string_view line) {
  while (!line.empty() && IsBlank(line.back())) line.remove_suffix(1);
  while (!line.empty() && IsBlank(line.front())) line.remove_prefix(1);
  return line;
}

absl::StatusOr<Records> ReadLines(DataFiles files, char comment) {
  Records records(Records::Content::kText);
  while (files.HasNext()) {
    ASSIGN_OR_RETURN(DataFile file, files.ReadNext(/*is_text=*/true));
    // What is cut off is no line.
    if (!file.is_whole) file.bytes.resize(file.bytes.rfind('\n') + 1);
    const absl::string_view text =
        records.AddFile(std::move(file.path), std::move(file.bytes));
    for (size_t start = text.substr(0, kByteOrderMark.size()) == kByteOrderMark
                            ? kByteOrderMark.size()
                            : 0;
         start < text.size();) {
      size_t end = text.find('\n', start);
      if (end == absl::string_view::npos) end = text.size();
      const absl::string_view line = Trimmed(text.substr(start, end - start));
      if (!line.empty() && line.front() != comment) {
        records.Add(line.data() - text.data(), line.size());
      }
      start = end + 1;
    }
  }
  if (files.is_sample()) records.MarkSample();
  return records;
}

}  // namespace parasol
