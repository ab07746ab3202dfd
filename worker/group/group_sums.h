#ifndef PARASOL_WORKER_GROUP_GROUP_SUMS_H_
#define PARASOL_WORKER_GROUP_GROUP_SUMS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "worker/group/group_run.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// How a group adds the gradients of variables of a step, and applies the means.
// Used by the thread that makes steps. Functions fail also with the errors of
// GroupRun::AwaitOwn().
class GroupSums {
 public:
  virtual ~GroupSums() = default;

  // Notes that the group was joined: its replicas' gradients may come.
  virtual void BeginGroup(GroupRun& run) = 0;
  // Meets the other ranks, before the group's first step.
  virtual absl::Status Meet(GroupRun& run) = 0;
  // Notes that the group has ended on this rank.
  virtual void EndGroup() = 0;

  // Begins the sums of a step over all replicas, in ascending order; they are
  // there when the group's operations are complete. Calls `let_rows_leave` once
  // this worker's passes can't fail any more, and returns its errors.
  virtual absl::Status Add(
      GroupRun& run, int64_t step,
      absl::FunctionRef<absl::Status()> let_rows_leave) = 0;
  // Refuses sums that are not finite: all members alike, as they have the same.
  //   OutOfRange  names the variable and its element.
  virtual absl::Status CheckFinite(int64_t step) = 0;
  // Updates all variables by the means.
  //   Unavailable  a device was lost.
  virtual absl::Status Apply(ParameterStore& parameters) = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_SUMS_H_
