#ifndef PARASOL_LOOP_PEERS_CONTRIBUTIONS_H_
#define PARASOL_LOOP_PEERS_CONTRIBUTIONS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"

namespace parasol {

// The replicas that a process of a program computes: first, ...,
// first + count - 1.
struct ReplicaRange {
  int first = 0;
  int count = 1;
};

// Returns InvalidArgument, which names the sum by `what` and says why, unless
// there is one contribution of each replica, ascending, with as many elements
// as `sum` has.
absl::Status CheckContributions(absl::string_view what,
                                const std::vector<Contribution>& contributions,
                                absl::Span<const float> sum,
                                const ReplicaRange& replicas);

// Adds contributions in their order, ((c0 + c1) + c2) + ..., as a Collective
// does. All have sum.size() elements; `sum` may be the memory of one of them.
void AddInOrder(const std::vector<Contribution>& contributions,
                absl::Span<float> sum);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_CONTRIBUTIONS_H_
