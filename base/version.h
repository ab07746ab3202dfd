#ifndef PARASOL_BASE_VERSION_H_
#define PARASOL_BASE_VERSION_H_

#include <string>

namespace parasol {

inline constexpr char kVersion[] = "0.1.0";

// Returns the commit that this binary was built from, with "-dirty" if the tree
// had changes, or "unknown" unless the binary links //base:version_stamp. Only
// the binaries that users run link it, so that a commit makes no test run
// again.
std::string BuildCommit();

}  // namespace parasol

#endif  // PARASOL_BASE_VERSION_H_
