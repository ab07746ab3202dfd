#ifndef PARASOL_WORKER_STORE_VARIABLE_FRAGMENTS_H_
#define PARASOL_WORKER_STORE_VARIABLE_FRAGMENTS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/variable_spec.h"

namespace parasol {

// Returns the variables of each of `fragments` groups, the last layer's first.
// The largest variable goes first to the group with the fewest elements: groups
// of equal layers have each n-th layer. Frozen variables are in none.
//   InvalidArgument  there are fewer variables than groups.
absl::StatusOr<std::vector<std::vector<size_t>>> SplitIntoFragments(
    const std::vector<VariableSpec>& variables, size_t fragments);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_VARIABLE_FRAGMENTS_H_
