#ifndef PARASOL_CLUSTER_REPLICA_SUM_VECTOR_SUM_H_
#define PARASOL_CLUSTER_REPLICA_SUM_VECTOR_SUM_H_

#include <cstddef>

#include "absl/types/span.h"

namespace parasol {

// Adds addend[i] to sum[i]. `addend` has sum.size() float32, at any alignment.
void AddTo(absl::Span<float> sum, const std::byte* addend);

void DivideBy(absl::Span<float> values, float divisor);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_REPLICA_SUM_VECTOR_SUM_H_
