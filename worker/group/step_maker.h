#ifndef PARASOL_WORKER_GROUP_STEP_MAKER_H_
#define PARASOL_WORKER_GROUP_STEP_MAKER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/group/group_rows.h"
#include "worker/group/group_run.h"
#include "worker/group/group_sums.h"
#include "worker/group/state/group_state.h"
#include "worker/group/step_gradients.h"

namespace parasol {

// Makes steps of the state with a group: adds the gradients of variables, lets
// the gradients of rows travel, and applies the means when all of them are
// there, never in part. Used by one thread, but for Stop().
class StepMaker {
 public:
  // All references must outlive this object.
  StepMaker(GroupState& state, StepGradients& gradients, GroupSums& sums,
            GroupRows& rows)
      : state_(state), gradients_(gradients), sums_(sums), rows_(rows) {}

  // Notes that the group was joined, and that all its members have the
  // variables: they meet.
  void BeginGroup(GroupRun& run);
  absl::Status Meet(GroupRun& run) { return sums_.Meet(run); }
  // Makes the next step. Ends the state with an error that another group does
  // not mend.
  absl::Status MakeStep(GroupRun& run);
  // Notes that the group has ended on this rank.
  void EndGroup() { sums_.EndGroup(); }

  // Makes the step that ps have made of their tables, with the sums that are
  // here, if this worker leaves before its group has made it and no later group
  // has begun it again.
  void MakeLeftStep();

  // Ends what a step waits for outside of the group. From any thread.
  void Stop() { rows_.Stop(); }

 private:
  absl::Status CheckFinite(int64_t step);
  absl::Status Apply(int64_t group);

  GroupState& state_;
  StepGradients& gradients_;
  GroupSums& sums_;
  GroupRows& rows_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STEP_MAKER_H_
