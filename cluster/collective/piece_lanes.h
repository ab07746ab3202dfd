#ifndef PARASOL_CLUSTER_COLLECTIVE_PIECE_LANES_H_
#define PARASOL_CLUSTER_COLLECTIVE_PIECE_LANES_H_

#include "absl/status/status.h"
#include "cluster/collective/socket_collective.h"

namespace parasol {

// Other ranks of its machine that a rank has a lane to, at most; pieces to
// further ones travel on connections.
inline constexpr int kMaxLanes = 16;

// Has pieces between the ranks of each machine of the group travel in memory
// that both see (PieceLane), where the system lets them. All ranks call it
// before their first operation, or none does. Fails with the group's error if
// it has ended.
absl::Status UseLanes(SocketCollective& sockets);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PIECE_LANES_H_
