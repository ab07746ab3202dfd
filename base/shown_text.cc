#include "base/shown_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

constexpr size_t kMaxListed = 20;
constexpr size_t kMaxOfListed = 200;  // bytes

// Returns the bytes of the character at the front that is not ASCII and can be
// printed; 0 if there is none.
size_t PrintableBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t count = byte(0) >= 0xf0   ? 4
                       : byte(0) >= 0xe0 ? 3
                       : byte(0) >= 0xc2 ? 2
                                         : 0;
  if (count == 0 || byte(0) > 0xf4 || text.size() < count) return 0;
  uint32_t code = byte(0) & (0x7f >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0xa0, 0x800, 0x10000};  // by bytes, from 2
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  // Marks that turn the direction of what follows, and separators of lines.
  const bool is_control = (code >= 0x200b && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
  if (code < kSmallest[count - 2] || code > 0x10ffff || is_surrogate ||
      is_control) {
    return 0;
  }
  return count;
}

}  // namespace

std::string ShownText(absl::string_view text, size_t most) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t printable = PrintableBytes(text.substr(i));
    const size_t bytes = printable > 0 ? printable : 1;
    if (i + bytes > most) break;
    const absl::string_view character = text.substr(i, bytes);
    absl::StrAppend(&shown, printable > 0 ? std::string(character)
                                          : absl::CHexEscape(character));
    i += bytes;
  }
  return shown;
}

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

std::string ShownList(const std::vector<std::string>& texts) {
  if (texts.empty()) return "none";
  std::string shown;
  for (size_t i = 0; i < std::min(texts.size(), kMaxListed); ++i) {
    absl::StrAppend(&shown, i == 0 ? "" : ", ",
                    ShownText(texts[i], kMaxOfListed));
  }
  return texts.size() > kMaxListed ? absl::StrCat(shown, ", …") : shown;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace parasol
