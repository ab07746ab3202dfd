#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_ORDERED_SUM_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_ORDERED_SUM_H_

#include <cstddef>

#include "absl/types/span.h"

namespace parasol {

// Sets sum[i] to ((a[i] + b[i]) + c[i]) + ... of `addends`, each of which has
// sum.size() elements: to +0 if there are none. An addend may be the memory of
// `sum`, from its first element on.
void SumInOrder(absl::Span<const float* const> addends, absl::Span<float> sum);

// Copies `count` elements to memory that is not read soon: around the caches,
// where the processor can.
void CopyPastCaches(const float* from, size_t count, float* to);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_ORDERED_SUM_H_
