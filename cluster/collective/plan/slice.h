#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_SLICE_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_SLICE_H_

#include <algorithm>
#include <cstddef>

namespace parasol {

// Elements [first, first + count) of a pack.
struct ElementRange {
  size_t first = 0;
  size_t count = 0;
};

// Returns the slice of `rank` of a pack of `count` elements that `ranks` ranks
// share evenly; the first ones have one more if there is a rest.
inline ElementRange SliceOf(size_t count, int ranks, int rank) {
  const size_t whole = count / ranks;
  const size_t longer = count % ranks;
  const size_t index = rank;
  return {.first = index * whole + std::min(index, longer),
          .count = whole + (index < longer ? 1 : 0)};
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_SLICE_H_
