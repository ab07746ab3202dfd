#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_CONTRIBUTIONS_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_CONTRIBUTIONS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

using Layout = ReplicaLayout;

// Returns layouts of 1 to `max_ranks` ranks: one replica each, neighbours,
// interleaved, descending over the ranks, uneven, and with ranks that have
// none.
std::vector<Layout> TestLayouts(int max_ranks);

// Returns the contribution of a replica to pack `pack`: elements so different
// in size that sums in another order have other bits.
std::vector<float> ContributionOf(int replica, int pack, size_t count);

// Returns what a serial loop makes of the contributions of all replicas.
std::vector<float> SerialSum(const Layout& layout, int pack, size_t count);

// Returns true if both are the same to the last bit.
bool HasBits(absl::Span<const float> got, absl::Span<const float> want);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_CONTRIBUTIONS_H_
