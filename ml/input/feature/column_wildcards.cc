#include "ml/input/feature/column_wildcards.h"

#include <cstddef>
#include <optional>

#include "absl/strings/match.h"

namespace parasol {
namespace {

constexpr absl::string_view kWildcards = "*?[";

// Bytes of the character that `text` begins with.
size_t CharacterBytes(absl::string_view text) {
  const auto is_inside = [&text](size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  size_t bytes = 1;
  while (bytes < text.size() && is_inside(bytes)) ++bytes;
  return bytes;
}

// Returns true if `c` is in the set "[…]" that `pattern` begins with, whose
// size goes to `size`; nullopt if there is no set, as it has no end.
std::optional<bool> IsInSet(absl::string_view pattern, char c, size_t& size) {
  size_t at = 1;
  const bool is_negated =
      at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (is_negated) ++at;
  bool is_in = false;
  // A ] that comes first is one of the set.
  for (const size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) {
      size = at + 1;
      return is_in != is_negated;
    }
    const char low = pattern[at];
    char high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' &&
        pattern[at + 2] != ']') {
      high = pattern[at + 2];
      at += 2;
    }
    is_in = is_in || (low <= c && c <= high);
  }
  return std::nullopt;
}

// Matches the first token of `pattern`, no *, with the start of `name`, which
// has one. Moves both on and returns true if it does.
bool TakeOne(absl::string_view& pattern, absl::string_view& name) {
  if (pattern.front() == '?') {
    pattern.remove_prefix(1);
    name.remove_prefix(CharacterBytes(name));
    return true;
  }
  size_t size = 0;
  if (pattern.front() == '[') {
    const std::optional<bool> is_in = IsInSet(pattern, name.front(), size);
    if (is_in == false) return false;
    if (is_in == true) {
      pattern.remove_prefix(size);
      name.remove_prefix(CharacterBytes(name));
      return true;
    }
  }
  if (pattern.front() == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
  if (pattern.front() != name.front()) return false;
  pattern.remove_prefix(1);
  name.remove_prefix(1);
  return true;
}

}  // namespace

bool HasWildcards(absl::string_view name) {
  return name.find_first_of(kWildcards) != absl::string_view::npos;
}

std::string EscapedName(absl::string_view name) {
  if (!HasWildcards(name)) return std::string(name);
  std::string escaped;
  for (const char c : name) {
    if (c == '\\' || absl::StrContains(kWildcards, c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool IsEscapedName(absl::string_view name, std::string& literal) {
  literal.clear();
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 1 < name.size()) {
      literal += name[++i];
    } else if (kWildcards.find(name[i]) != absl::string_view::npos) {
      return false;
    } else {
      literal += name[i];
    }
  }
  return true;
}

bool MatchesWildcards(absl::string_view pattern, absl::string_view name) {
  // What follows the last *, and the rest of the name that it is tried on: only
  // the last one has to be tried at other places.
  std::optional<absl::string_view> behind_star;
  absl::string_view tried;
  while (true) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      behind_star = pattern;
      tried = name;
      continue;
    }
    if (pattern.empty() && name.empty()) return true;
    if (!pattern.empty() && !name.empty() && TakeOne(pattern, name)) continue;
    if (!behind_star || tried.empty()) return false;
    tried.remove_prefix(CharacterBytes(tried));
    pattern = *behind_star;
    name = tried;
  }
}

}  // namespace parasol
