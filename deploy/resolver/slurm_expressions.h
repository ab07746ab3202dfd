#ifndef PARASOL_DEPLOY_RESOLVER_SLURM_EXPRESSIONS_H_
#define PARASOL_DEPLOY_RESOLVER_SLURM_EXPRESSIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The compressed lists of Slurm's variables.
namespace parasol {

// Returns the nodes of "n[01-03,7],m5" in their order: n01, n02, n03, n7, m5.
// Numbers have as many digits as the start of their range. Several brackets in
// one name are all combinations, the last bracket fastest.
//   InvalidArgument  not such a list, or more than kMaxProcesses nodes.
absl::StatusOr<std::vector<std::string>> ExpandNodeList(absl::string_view list);

// Returns the numbers of "2(x3),1": 2, 2, 2, 1.
//   InvalidArgument  not such a list, or more than kMaxProcesses numbers or
//                    processes.
absl::StatusOr<std::vector<int>> ExpandTasksPerNode(absl::string_view list);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_RESOLVER_SLURM_EXPRESSIONS_H_
