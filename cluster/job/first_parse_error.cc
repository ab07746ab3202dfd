#include "cluster/job/first_parse_error.h"

#include "absl/strings/ascii.h"

namespace parasol {

void FirstParseError::AddError(int line, int column,
                               const std::string& message) {
  if (!message_.empty()) return;
  line_ = line;
  column_ = column;
  // The parser quotes what it read, whatever bytes that was.
  constexpr size_t kMaxErrorBytes = 300;
  message_ = message.substr(0, kMaxErrorBytes);
  for (char& c : message_) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
}

}  // namespace parasol
