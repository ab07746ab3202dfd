#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_LISTENING_SOCKET_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_LISTENING_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace parasol {

// Returns a socket that does not block and listens on `host` ("127.0.0.1",
// "[::]", a name) and `port` (0: the system chooses one).
//   InvalidArgument  "can't take <what> on host:port: <why>": the host is not
//                    this machine, or the port is in use.
absl::StatusOr<Descriptor> ListenOn(const std::string& host, int port,
                                    const std::string& what);

// Returns the port that a socket listens on.
int PortOf(const Descriptor& socket);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_LISTENING_SOCKET_H_
