#ifndef PARASOL_CLUSTER_RPC_PEER_H_
#define PARASOL_CLUSTER_RPC_PEER_H_

#include <optional>

#include "cluster/trust/peer_identity.h"
#include "grpcpp/server_context.h"

namespace parasol {

// Returns who has made a call, as its connection's certificate proves; nullopt
// if the connection proves nothing, since the job has no keys. The identity's
// role is kUnknown if there is a certificate, and it says no identity.
std::optional<PeerIdentity> PeerOf(const grpc::ServerContextBase& call);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_PEER_H_
