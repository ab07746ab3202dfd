#ifndef PARASOL_CLUSTER_RPC_SERVER_H_
#define PARASOL_CLUSTER_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grpc {
class CallbackGenericService;
class Server;
class Service;
}  // namespace grpc

namespace parasol {

// A gRPC server of one task, with the standard health service
// (grpc.health.v1) and our limits on messages and streams.
class RpcServer {
 public:
  // Listens on `address` ("host:port", port 0: chosen by the system) and serves
  // `services` (none: health alone), which must outlive the server. Health says
  // NOT_SERVING until SetServing(true).
  //   InvalidArgument  the address can't be listened on: names it, e.g. its
  //                    port is in use.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, std::vector<grpc::Service*> services);
  ~RpcServer();

  int port() const { return port_; }
  void SetServing(bool serving);

  // Stops accepting calls; those that are running are cut after `grace`.
  // May be called twice.
  void Stop(absl::Duration grace);

  // Where a task listens that its peers know as `address`: the same loopback
  // host, or else all interfaces, with the same port.
  static std::string ListenAddress(const std::string& address);

 private:
  RpcServer();
  // Answers every call with UNIMPLEMENTED, where there is no service.
  std::unique_ptr<grpc::CallbackGenericService> no_methods_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_SERVER_H_
