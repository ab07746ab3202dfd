#include "cluster/inspection/cut_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace parasol {

std::string CutText(absl::string_view text, size_t most) {
  constexpr absl::string_view kCut = "\n(cut)\n";
  std::string lines(text.substr(0, most));
  if (text.size() > most) {
    lines.resize(most - kCut.size());
    absl::StrAppend(&lines, kCut);
  }
  for (char& c : lines) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '\n' && !absl::ascii_isprint(byte)) c = '?';
  }
  return lines;
}

}  // namespace parasol
