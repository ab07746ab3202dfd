#include "cluster/check/one_line.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {

std::string OneLine(absl::string_view message) {
  const auto is_plain = [](unsigned char c) { return absl::ascii_isprint(c); };
  std::string line;
  for (auto at = message.begin(); at != message.end();) {
    const auto end = std::find_if_not(at, message.end(), is_plain);
    line.append(at, end);
    at = std::find_if(end, message.end(), is_plain);
    const absl::string_view other(end, at - end);
    absl::StrAppend(&line, ShownText(other, other.size()));
  }
  return line;
}

}  // namespace parasol
