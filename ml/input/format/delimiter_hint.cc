#include "ml/input/format/delimiter_hint.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr absl::string_view kDelimiters[] = {";", "\t", "|", ","};

// Returns true if `column` is several names between `delimiter`s, one of them
// `name`.
bool IsOneOf(absl::string_view name, absl::string_view column,
             absl::string_view delimiter) {
  const std::vector<absl::string_view> names =
      absl::StrSplit(column, delimiter);
  for (absl::string_view one : names) {
    one = absl::StripAsciiWhitespace(one);
    if (absl::ConsumePrefix(&one, "\"")) absl::ConsumeSuffix(&one, "\"");
    if (names.size() > 1 && one == name) return true;
  }
  return false;
}

}  // namespace

std::string DelimiterHint(absl::string_view name,
                          const std::vector<std::string>& columns) {
  for (const absl::string_view delimiter : kDelimiters) {
    for (const std::string& column : columns) {
      if (!IsOneOf(name, column, delimiter)) continue;
      return absl::StrCat("; is csv.delimiter: \"", ShownText(delimiter),
                          "\" meant?");
    }
  }
  return columns.size() == 1 ? "; is csv.delimiter right?" : "";
}

}  // namespace parasol
