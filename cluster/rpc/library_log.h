#ifndef PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_
#define PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_

namespace parasol {

// Redirects the messages that gRPC and protobuf write to stderr: they repeat
// our statuses, and a peer that sends nonsense would fill the log with them.
// Afterwards protobuf's lines are dropped; gRPC's appear in our log, and only
// if GRPC_VERBOSITY asks for info or debug. May be called more than once, from
// any thread.
void QuietLibraryLog();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_LIBRARY_LOG_H_
