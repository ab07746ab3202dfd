#ifndef PARASOL_CLUSTER_RPC_CHANNEL_H_
#define PARASOL_CLUSTER_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "cluster/trust/trust.h"
#include "grpcpp/channel.h"

namespace parasol {

// Channels with our limits and keepalive. They reconnect by themselves, at
// most a second after the peer is back at its address. A peer that is not the
// `callee` is not connected to: calls fail with Unavailable and say why.

// Makes a channel for calls of ordinary size, with a connection of its own: a
// new channel reaches whichever process is at the address now, also if a former
// connection is dead or a former process still has its connections.
std::shared_ptr<grpc::Channel> MakeControlChannel(const std::string& address,
                                                  const Callee& callee = {});

// Makes a channel for tensors: a connection of its own, large frames and
// windows.
std::shared_ptr<grpc::Channel> MakeTensorChannel(const std::string& address,
                                                 const Callee& callee = {});

// Makes the channel connect now. Call it before a failed call is repeated: gRPC
// asks ever less often (up to every two minutes) for a name that did not
// resolve, such as a pod's that is not there yet.
void ReconnectNow(grpc::Channel& channel);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_CHANNEL_H_
