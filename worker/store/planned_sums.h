#ifndef PARASOL_WORKER_STORE_PLANNED_SUMS_H_
#define PARASOL_WORKER_STORE_PLANNED_SUMS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/combined_plan.h"

namespace parasol {

// Sums of the gradients of one process's replicas as a user's planner plans
// them, each replica being a rank. A thread carries out the plans of all ranks,
// for as many elements as it is asked for. Thread-safe.
class PlannedSums {
 public:
  // Tries the planner out.
  //   InvalidArgument  what CheckPlanner() says of it.
  static absl::StatusOr<std::unique_ptr<PlannedSums>> Create(
      std::shared_ptr<const AllReducePlanner> planner, int replicas);

  // Sets `sum` to the sums of the gradients' elements [first, first +
  // sum.size()). `workspace` is the thread's own, and grows where it must.
  //   InvalidArgument  the plans for sum.size() elements are wrong: says how.
  absl::Status Add(absl::Span<const absl::Span<const float>> gradients,
                   size_t first, absl::Span<float> sum,
                   std::vector<float>& workspace) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the planner's name.
  std::string name() const { return planner_->name(); }

 private:
  PlannedSums(std::shared_ptr<const AllReducePlanner> planner,
              ReplicaLayout layout)
      : planner_(std::move(planner)), layout_(std::move(layout)) {}

  // Returns the plan for `count` elements, the same one each time.
  absl::StatusOr<const CombinedPlan*> PlanOf(size_t count)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<const AllReducePlanner> planner_;
  const ReplicaLayout layout_;
  absl::Mutex mu_;
  // Plans by the number of elements: of blocks, and of the ends of variables.
  std::map<size_t, CombinedPlan> plans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_PLANNED_SUMS_H_
