#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_ALL_REDUCE_PLANNER_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_ALL_REDUCE_PLANNER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

// A way in which a group sums, in place of the one that ChooseReduction()
// chooses. Immutable, thread-safe and pure: a plan depends on the arguments
// alone, so that all ranks plan the same operation.
class AllReducePlanner {
 public:
  virtual ~AllReducePlanner() = default;

  // Returns the planner's name with all that its plans depend on, "ring" or
  // "tree(width=4)". Ranks whose planners have different names make no group.
  virtual std::string name() const = 0;

  // Returns what `rank` does so that every rank has the sums of the
  // contributions of all replicas. The plan's buffers are
  //   0 … n-1  the contributions of the rank's n replicas, reduction.count
  //            floats each; only read; n may be 0;
  //   n        the sums, as many floats; may be the memory of one of the
  //            contributions, so an element is written after it was last read;
  //   n + 1    scratch, CollectivePlan::scratch_bytes.
  // A receive that waits for steps of its own rank must not be sent before
  // those are done: the message then has nowhere to go. Sums of other orders
  // than the replicas' are allowed, but every rank must have the same bits;
  // CheckPlanner() looks at that.
  virtual CollectivePlan AllReduce(const Reduction& reduction,
                                   int rank) const = 0;
};

// Returns the planner by which each rank sums the elements of one slice, and
// sends and receives as many bytes as in a ring. Sums are in ascending order of
// the replicas.
std::shared_ptr<const AllReducePlanner> OwnerSlicesPlanner();

// Returns OK if a rank of `ranks` with `contributions` contributions can carry
// the plan out in its memory: every step has a buffer that is there, whole
// floats and a rank that is not its own, and writes to no contribution.
//   InvalidArgument  names the step and what is wrong with it.
absl::Status CheckPlan(const CollectivePlan& plan, const Reduction& reduction,
                       int rank);

// The number of ranks up to which CheckPlanner() carries plans out.
inline constexpr int kMaxRehearsedRanks = 64;

// Carries out the planner's plans of all ranks of `layout` in memory, with
// several small sizes, with sums apart and in place of a contribution, and
// with messages in different orders. Returns OK if every rank has every
// contribution once in its sums, and all have the same bits. With more than
// kMaxRehearsedRanks ranks, OK without a look.
//   InvalidArgument  "all-reduce <name>: …" says for which size, rank and
//                    element, or which message was never sent or received.
absl::Status CheckPlanner(const AllReducePlanner& planner,
                          const ReplicaLayout& layout);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_ALL_REDUCE_PLANNER_H_
