#include "ml/model/graph_checks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

constexpr size_t kMaxNameLength = 200;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
}

}  // namespace

absl::Status CheckGraphShape(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t axis : shape) {
    if (axis <= 0 || axis > kMaxGraphElements / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(shape, ", "),
                       "]: axes must be positive and their product at most ",
                       kMaxGraphElements));
    }
    elements *= axis;
  }
  return absl::OkStatus();
}

absl::Status CheckGraphName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name is 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-', '.', '/'"));
  }
  return absl::OkStatus();
}

}  // namespace parasol
