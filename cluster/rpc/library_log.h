#ifndef PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_
#define PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_

namespace parasol {

// What gRPC and protobuf write to stderr repeats what our statuses say, and a
// peer that sends nonsense would fill the log with it. From now on protobuf's
// lines are dropped; gRPC's appear in our log, and only if GRPC_VERBOSITY asks
// for info or debug. May be called more than once, from any thread.
void QuietLibraryLog();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_
