#include "ml/custom/code_registry.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"

namespace parasol {

bool IsCodeName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxCodeNameBytes &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

std::string LacksCode(absl::string_view part, absl::string_view type,
                      absl::string_view roles,
                      const std::vector<std::string>& registered) {
  const std::string has =
      registered.empty() ? "none" : absl::StrJoin(registered, ", ");
  return absl::StrCat("this program has no custom ", part, " \"",
                      absl::CHexEscape(type), "\" (it has: ", has, ")",
                      DidYouMean(type, registered),
                      "; start the one that is linked with its code, as ",
                      roles, " (docs/examples/custom_model)");
}

}  // namespace parasol
