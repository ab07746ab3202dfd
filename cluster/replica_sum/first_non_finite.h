#ifndef PARASOL_CLUSTER_REPLICA_SUM_FIRST_NON_FINITE_H_
#define PARASOL_CLUSTER_REPLICA_SUM_FIRST_NON_FINITE_H_

#include <cstddef>

namespace parasol {

// Returns the index of the first of `count` float32, at any alignment, that is
// infinite or NaN; `count` if there is none.
size_t FirstNonFinite(const std::byte* elements, size_t count);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_REPLICA_SUM_FIRST_NON_FINITE_H_
