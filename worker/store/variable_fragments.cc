#include "worker/store/variable_fragments.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {

absl::StatusOr<std::vector<std::vector<size_t>>> SplitIntoFragments(
    const std::vector<VariableSpec>& variables, size_t fragments) {
  std::vector<size_t> by_size;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].frozen) by_size.push_back(i);
  }
  if (by_size.size() < fragments) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter_server.local_steps.fragments: ", fragments,
                     " fragments of whole variables, but only ", by_size.size(),
                     " of the model's change; set at most that many"));
  }
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    return variables[a].elements() > variables[b].elements();
  });
  std::vector<std::vector<size_t>> groups(fragments);
  std::vector<int64_t> elements(fragments);
  for (const size_t i : by_size) {
    const size_t least =
        std::min_element(elements.begin(), elements.end()) - elements.begin();
    groups[least].push_back(i);
    elements[least] += variables[i].elements();
  }
  for (std::vector<size_t>& group : groups) {
    std::sort(group.begin(), group.end(), std::greater<>());
  }
  return groups;
}

}  // namespace parasol
