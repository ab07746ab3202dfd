#ifndef PARASOL_CLUSTER_RPC_GRPC_LOG_H_
#define PARASOL_CLUSTER_RPC_GRPC_LOG_H_

namespace parasol {

// gRPC's own lines on stderr repeat what our statuses say. From now on they
// appear in our log, and only if GRPC_VERBOSITY asks for info or debug.
// May be called more than once.
void QuietGrpcLog();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_GRPC_LOG_H_
