#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_COMBINED_PLAN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_COMBINED_PLAN_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

// The plans of all ranks of an all-reduce as one list of copies and sums, for
// ranks that share a thread: a message is a copy. Rank 0's sums are the result;
// what only other ranks' sums need is left out. Immutable and thread-safe.
class CombinedPlan {
 public:
  // Combines what `planner` plans.
  //   InvalidArgument  "all-reduce <name> of <n> elements: …": a plan does not
  //                    fit its rank's memory, a message is not sent or not
  //                    waited for, steps wait for each other, or sums that are
  //                    tried out are wrong.
  static absl::StatusOr<CombinedPlan> Make(const AllReducePlanner& planner,
                                           const Reduction& reduction);

  // Returns the number of elements of memory that Run() works in.
  size_t workspace_elements() const { return workspace_elements_; }

  // Sets `sum` to the sums of the contributions, each of reduction.count
  // elements: rank 0's in their order, then rank 1's, and so on. `sum` and
  // `workspace` overlap no contribution.
  void Run(absl::Span<const float* const> contributions, absl::Span<float> sum,
           absl::Span<float> workspace) const;

 private:
  // Elements of one of the memories: the contributions, then the sums, then the
  // workspace.
  struct Place {
    size_t memory = 0;
    size_t first = 0;
  };
  // Sets `count` elements to the sum of the addends, a lone one of which is
  // copied.
  struct Action {
    Place to;
    size_t count = 0;
    std::vector<Place> addends = {};
  };
  class Combiner;

  // Returns OK if contributions that tell themselves apart are summed rightly.
  absl::Status Try(const Reduction& reduction) const;

  std::vector<Action> actions_;
  size_t workspace_elements_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_COMBINED_PLAN_H_
