#ifndef PARASOL_BASE_SHOWN_TEXT_H_
#define PARASOL_BASE_SHOWN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Returns the first `most` bytes of a text from outside as a message of one
// line shows them: what can't be printed is escaped.
inline std::string ShownText(absl::string_view text, size_t most = 60) {
  return absl::CHexEscape(text.substr(0, most));
}

}  // namespace parasol

#endif  // PARASOL_BASE_SHOWN_TEXT_H_
