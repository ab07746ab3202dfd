#include "base/uri/uri_path.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr absl::string_view kBehindScheme = "://";

bool IsOption(absl::string_view text) {
  const size_t end = text.find('=');
  return end != absl::string_view::npos && end > 0 &&
         std::all_of(text.begin(), text.begin() + end, [](char c) {
           return absl::ascii_isalpha(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '-';
         });
}

// A path, and the options of a URI with their '?'.
struct Parts {
  absl::string_view path;
  absl::string_view options;
};

Parts PartsOf(absl::string_view path) {
  const std::optional<size_t> options =
      IsUri(path) ? OptionsBegin(path) : std::nullopt;
  if (!options.has_value()) return {path, ""};
  return {path.substr(0, *options - 1), path.substr(*options - 1)};
}

}  // namespace

size_t SchemeBytes(absl::string_view path) {
  const size_t size = path.find(kBehindScheme);
  if (size == absl::string_view::npos || size == 0) return 0;
  const absl::string_view name = path.substr(0, size);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' ||
           c == '-' || c == '.';
  });
  return is_name ? size : 0;
}

bool IsUri(absl::string_view path) { return SchemeBytes(path) > 0; }

std::optional<size_t> OptionsBegin(absl::string_view uri) {
  const size_t mark = uri.rfind('?');
  if (mark == absl::string_view::npos) return std::nullopt;
  for (const absl::string_view option :
       absl::StrSplit(uri.substr(mark + 1), '&')) {
    if (!IsOption(option)) return std::nullopt;
  }
  return mark + 1;
}

std::string JoinedPath(absl::string_view directory, absl::string_view path) {
  if (IsUri(path)) return std::string(path);
  if (!IsUri(directory) || absl::StartsWith(path, "/")) {
    return (std::filesystem::path(std::string(directory)) / std::string(path))
        .string();
  }
  Parts parts = PartsOf(directory);
  absl::ConsumeSuffix(&parts.path, "/");
  return absl::StrCat(parts.path, "/", path, parts.options);
}

std::string ParentPath(absl::string_view path) {
  const Parts parts = PartsOf(path);
  const size_t slash = parts.path.rfind('/');
  if (slash == absl::string_view::npos) return "";
  return absl::StrCat(parts.path.substr(0, slash), parts.options);
}

std::string LastName(absl::string_view path) {
  const absl::string_view whole = PartsOf(path).path;
  const size_t slash = whole.rfind('/');
  return std::string(
      slash == absl::string_view::npos ? whole : whole.substr(slash + 1));
}

}  // namespace parasol
