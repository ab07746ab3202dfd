#ifndef PARASOL_CLUSTER_RIGHTS_CHECKED_CALL_H_
#define PARASOL_CLUSTER_RIGHTS_CHECKED_CALL_H_

#include "absl/status/status.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/status.h"
#include "grpcpp/server_context.h"
#include "proto/chief.pb.h"

namespace parasol {

// Returns what a unary rpc returns: the result of `call()`, a StatusOr that
// `response` takes, if the peer may call `method` as `task`.
template <typename Response, typename Call>
grpc::Status CheckedCall(const Rights& rights, Method method,
                         const grpc::ServerContext& context,
                         const wire::Task& task, Response* response,
                         Call call) {
  const absl::Status allowed = rights.Check(method, PeerOf(context), task);
  if (!allowed.ok()) return ToGrpcStatus(allowed);
  return Answer(call(), response);
}
template <typename Response, typename Call>
grpc::Status CheckedCall(const Rights& rights, Method method,
                         const grpc::ServerContext& context, Response* response,
                         Call call) {
  return CheckedCall(rights, method, context, wire::Task(), response, call);
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RIGHTS_CHECKED_CALL_H_
