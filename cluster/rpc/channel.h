#ifndef PARASOL_CLUSTER_RPC_CHANNEL_H_
#define PARASOL_CLUSTER_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace parasol {

// Channels with our limits and keepalive. They reconnect by themselves, at
// most a second after the peer is back.

// For calls of ordinary size; channels to one address share a connection.
std::shared_ptr<grpc::Channel> MakeControlChannel(const std::string& address);

// For tensors: a connection of its own, large frames and windows.
std::shared_ptr<grpc::Channel> MakeTensorChannel(const std::string& address);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_CHANNEL_H_
