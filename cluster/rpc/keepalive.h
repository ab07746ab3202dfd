#ifndef PARASOL_CLUSTER_RPC_KEEPALIVE_H_
#define PARASOL_CLUSTER_RPC_KEEPALIVE_H_

#include "absl/time/time.h"

namespace parasol {

// Time without anything from a peer after which it is asked for a sign of life,
// and the time that it has to answer: a connection that carries nothing any
// more, because a machine or a link is gone without a word, is closed after
// both. Together they are no more than a lease.
inline constexpr absl::Duration kKeepaliveTime = absl::Seconds(5);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(5);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_KEEPALIVE_H_
