#ifndef PARASOL_CLUSTER_RPC_CALL_FAILURE_H_
#define PARASOL_CLUSTER_RPC_CALL_FAILURE_H_

#include <string>

#include "grpcpp/support/status.h"

namespace parasol {

// Returns what a call's error means and what to do, as text behind the peer's
// name: that nothing listens, that the name is unknown, that no answer came,
// that another program answers. gRPC tells these apart by its messages alone.
// Returns a server's own message as it is. Pure.
std::string DescribeCallFailure(const grpc::Status& status);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_CALL_FAILURE_H_
