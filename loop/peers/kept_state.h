#ifndef PARASOL_LOOP_PEERS_KEPT_STATE_H_
#define PARASOL_LOOP_PEERS_KEPT_STATE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "worker/group/state/group_state.h"

// A state in a file in memory, for the process that takes this one's place.
namespace parasol {

// Writes the state to a file that has no name, and is there as long as its
// descriptor is.
//   FailedPrecondition  there is no state yet.
//   ResourceExhausted   there is not as much memory.
absl::StatusOr<Descriptor> KeepState(GroupState& state);

// Makes the state that KeepState() has written `state`'s.
//   InvalidArgument  it is of other variables, or no such file.
absl::Status TakeKeptState(int file, GroupState& state);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_KEPT_STATE_H_
