#ifndef PARASOL_BASE_SHOWN_TEXT_H_
#define PARASOL_BASE_SHOWN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// Returns the first `most` bytes of a text from outside as a message of one
// line shows them: letters of every alphabet as they are (UTF-8), control
// characters, quotes, backslashes and what is no UTF-8 escaped. Pure.
std::string ShownText(absl::string_view text, size_t most = 60);

// Returns a whole message as one line that a terminal can show: control
// characters and what is no UTF-8 escaped, the rest, quotes too, as it is.
// Pure.
std::string OneLine(absl::string_view message);

// Returns texts, each as ShownText() has it, in a list, "user, item", the first
// 20 if they are more; "none" if there are none. Pure.
std::string ShownList(const std::vector<std::string>& texts);

// Returns "[28, 28, 1]". Pure.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace parasol

#endif  // PARASOL_BASE_SHOWN_TEXT_H_
