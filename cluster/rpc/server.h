#ifndef PARASOL_CLUSTER_RPC_SERVER_H_
#define PARASOL_CLUSTER_RPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/trust/trust.h"

namespace grpc {
class CallbackGenericService;
class Server;
class ServerBuilder;
class ServerCompletionQueue;
class Service;
}  // namespace grpc

namespace parasol {

class CompletionThread;

// A service that has calls which gRPC does not run on threads of its own: they
// complete on queues that the server's threads poll.
class PolledService {
 public:
  virtual ~PolledService() = default;
  virtual grpc::Service& service() = 0;

  // Begins to take calls whose operations complete on `queue`, with tags that
  // are CompletionThread::Operations. Called once for each queue.
  virtual void AcceptOn(grpc::ServerCompletionQueue& queue) = 0;

  // Blocks until no call begins an operation on a queue any more. Called when
  // the server has stopped: gRPC then completes the operations in progress.
  virtual void AwaitNoCalls() = 0;
};

// A gRPC server of one task, with the standard health service
// (grpc.health.v1). Whoever connects can take a bounded part of the process
// alone: it has limits of messages, headers, calls of a connection, pings,
// threads and memory, and takes no compressed messages, which are as large as
// their sender likes.
class RpcServer {
 public:
  // Listens on `address` ("host:port"; the system chooses the port if it is 0)
  // and serves `services` (none: health alone), which must outlive the server.
  // Health says NOT_SERVING until SetServing(true). With `trust`, only tasks of
  // its job can connect; without, everybody can.
  //   InvalidArgument  the address can't be listened on, e.g. its port is in
  //                    use; the message names it.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, std::vector<grpc::Service*> services,
      std::shared_ptr<const Trust> trust = nullptr);

  // Limits of all clients of a server together.
  struct ClientLimits {
    // Bytes of partly received or unread messages that gRPC's connections may
    // hold. Beyond it gRPC receives less at a time, then ends streams with
    // ResourceExhausted.
    size_t transport_bytes = size_t{1} << 30;
    // Threads of the server, some of which wait for calls: a call that finds
    // none is answered with ResourceExhausted.
    int threads = 128;
    // Calls in progress on one connection; more wait at the client.
    int calls_per_connection = 100;
  };
  // Starts a server with other limits. Fails as the first Start() does.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, std::vector<grpc::Service*> services,
      const ClientLimits& limits);

  struct PollingOptions {
    int threads = 1;
    ClientLimits limits = {};
    std::shared_ptr<const Trust> trust = nullptr;
  };
  // Starts a server with a service that threads of the server poll.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, PolledService& service,
      const PollingOptions& options);
  ~RpcServer();

  int port() const { return port_; }
  void SetServing(bool serving);

  // Stops accepting calls; calls in progress are cut after `grace`. When it
  // returns, all calls have ended, and no thread of the server works on any.
  // May be called twice.
  void Stop(absl::Duration grace);

  // Returns the address to listen on for a task that its peers know as
  // `address`: the same loopback host, or else all interfaces, with the same
  // port.
  static std::string ListenAddress(const std::string& address);

 private:
  RpcServer();
  static absl::StatusOr<std::unique_ptr<RpcServer>> StartWith(
      const std::string& address, const std::vector<grpc::Service*>& services,
      const ClientLimits& limits, const Trust* trust);
  absl::Status Build(const std::string& address,
                     const std::vector<grpc::Service*>& services,
                     const Trust* trust, grpc::ServerBuilder& builder);

  // Answers every call with UNIMPLEMENTED if there is no service.
  std::unique_ptr<grpc::CallbackGenericService> no_methods_;
  std::unique_ptr<grpc::Server> server_;
  PolledService* polled_ = nullptr;
  // The polling threads. Must outlive the calls of polled_, but not the server.
  std::vector<std::unique_ptr<CompletionThread>> threads_;
  int port_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_SERVER_H_
