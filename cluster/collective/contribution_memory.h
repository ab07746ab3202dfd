#ifndef PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_MEMORY_H_
#define PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"

namespace parasol {

// Returns zeroed memory of this process at a multiple of 64 bytes.
std::shared_ptr<float[]> AllocateElements(size_t count);

// Ends the process, with a message, unless each of the own rank's replicas has
// a contribution of `count` elements, in order: the caller's mistake.
void CheckContributions(const CollectiveGroup& group,
                        const std::vector<Contribution>& contributions,
                        size_t count);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_MEMORY_H_
