#ifndef PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_
#define PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_

#include <vector>

#include "absl/status/statusor.h"

namespace parasol {

// `count` different TCP ports of 127.0.0.1 that nobody listens on now, outside
// the range that the kernel takes ports of outgoing connections from: a task
// that restarts must find its port free.
//   ResourceExhausted  there are not so many.
absl::StatusOr<std::vector<int>> FreeLoopbackPorts(int count);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_LOOPBACK_PORTS_H_
