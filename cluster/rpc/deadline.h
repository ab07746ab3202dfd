#ifndef PARASOL_CLUSTER_RPC_DEADLINE_H_
#define PARASOL_CLUSTER_RPC_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace parasol {

// Returns a deadline for gRPC that is `duration` from now. A span, not a time
// of day: gRPC counts it by the monotonic clock, and a clock that is set makes
// no call end early or late. A year or more is no deadline.
inline gpr_timespec DeadlineIn(absl::Duration duration) {
  if (duration >= absl::Hours(365 * 24)) {
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  }
  return gpr_time_from_millis(absl::ToInt64Milliseconds(duration),
                              GPR_TIMESPAN);
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_DEADLINE_H_
