#ifndef PARASOL_WORKER_GROUP_STATE_WAIT_INTERVALS_H_
#define PARASOL_WORKER_GROUP_STATE_WAIT_INTERVALS_H_

#include "absl/time/time.h"

namespace parasol {

// How often a wait looks whether its group has ended, or it is wanted no more.
// What ends the wait on this worker wakes it at once.
inline constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

// How often a wait says what it waits for.
inline constexpr absl::Duration kLogInterval = absl::Seconds(10);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_WAIT_INTERVALS_H_
