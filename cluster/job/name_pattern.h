#ifndef PARASOL_CLUSTER_JOB_NAME_PATTERN_H_
#define PARASOL_CLUSTER_JOB_NAME_PATTERN_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

// Names of variables and tables as `warm_start` has them: "hidden/kernel" means
// one, "hidden/" all that begin so, and "" all.
namespace parasol {

inline bool IsNamePrefix(absl::string_view pattern) {
  return pattern.empty() || absl::EndsWith(pattern, "/");
}

inline bool PatternCovers(absl::string_view pattern, absl::string_view name) {
  return IsNamePrefix(pattern) ? absl::StartsWith(name, pattern)
                               : pattern == name;
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_NAME_PATTERN_H_
