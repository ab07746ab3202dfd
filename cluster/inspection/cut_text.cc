#include "cluster/inspection/cut_text.h"

#include "absl/strings/str_cat.h"

namespace parasol {

std::string CutText(absl::string_view text, size_t most) {
  constexpr absl::string_view kCut = "\n(cut)\n";
  if (text.size() <= most) return std::string(text);
  return absl::StrCat(text.substr(0, most - kCut.size()), kCut);
}

}  // namespace parasol
