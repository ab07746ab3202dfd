#ifndef PARASOL_CLUSTER_COLLECTIVE_RANK_CONNECTION_H_
#define PARASOL_CLUSTER_COLLECTIVE_RANK_CONNECTION_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "cluster/collective/collective_group.h"

namespace parasol {

// Connects to rank `to` of the group, says hello, and proves and asks for the
// group's secret. Blocks for `limit` at most.
//   Unavailable         it can't be reached, or has not joined the group yet;
//                       the same call may succeed later.
//   FailedPrecondition  it has joined a later group, or refuses the secret or
//                       the ranks, and does so a second time: it will not take
//                       this connection.
//   InvalidArgument     it is of another build.
absl::StatusOr<Descriptor> ConnectToRank(const CollectiveGroup& group, int to,
                                         absl::Duration limit);

// Makes a socket between ranks send at once, and never block.
absl::Status SetRankSocketOptions(int fd);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_RANK_CONNECTION_H_
