#include "tool/checkpoint/aligned_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/shown_text.h"

namespace parasol {

std::string AlignedText(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], OneLine(row[i]).size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      absl::StrAppendFormat(&line, " %*s", i == 0 ? -width : width + 1,
                            OneLine(row[i]));
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace parasol
