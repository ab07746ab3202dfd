#ifndef PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_
#define PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_

#include <vector>

#include "absl/status/statusor.h"

namespace parasol {

// Returns `count` different TCP ports of 127.0.0.1 that are free now, outside
// the range from which the kernel takes ports of outgoing connections: a task
// that restarts must find its port free.
//   ResourceExhausted  fewer than `count` ports are free.
absl::StatusOr<std::vector<int>> FreeLoopbackPorts(int count);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_
