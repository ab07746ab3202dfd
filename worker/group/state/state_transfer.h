#ifndef PARASOL_WORKER_GROUP_STATE_STATE_TRANSFER_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_TRANSFER_H_

#include <functional>

#include "absl/status/status.h"
#include "base/clock.h"
#include "cluster/collective/collective.h"
#include "worker/group/state/group_state.h"

namespace parasol {

// Gives all ranks of a new group the state that is the furthest of theirs: the
// first operations of each group. A rank that has it keeps its own; the others
// take a copy, bit for bit. A group in which no rank has variables waits until
// one has loaded them, and says so in the log every 10 s. A state that was
// loaded, if no rank has a later one, goes on at its goes_on_at(). A state that
// could not be copied as a whole changes nothing.
//
// `may_go_on` is polled during such a wait, and between pieces of a copy, by
// all ranks of the group; it ends them with Cancelled. A copy says in the log
// how far it is, every 10 s. Returns errors of Collective, and
//   InvalidArgument  a rank's message is not what was agreed on; names it.
//   ResourceExhausted and the like  the copy does not fit here.
absl::Status AgreeOnState(Collective& collective, GroupState& state,
                          const std::function<bool()>& may_go_on, Clock& clock);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_TRANSFER_H_
