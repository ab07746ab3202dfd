#include "cluster/rpc/server.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/address.h"
#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/deadline.h"
#include "cluster/rpc/keepalive.h"
#include "cluster/rpc/library_log.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/tensor_arguments.h"
#include "grpc/grpc.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace parasol {
namespace {

struct HostPort {
  absl::string_view host;
  absl::string_view port;
};

absl::StatusOr<HostPort> Split(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not host:port"));
  }
  return HostPort{address.substr(0, colon), address.substr(colon + 1)};
}

// Headers of a call: a name, a deadline, an offer of memory or of a lane.
constexpr int kMaxMetadataBytes = 16 << 10;
// Pings that come too early, of which a connection is closed.
constexpr int kMaxPingStrikes = 2;
// Tasks send heartbeats; who does nothing for so long is gone.
constexpr absl::Duration kMaxConnectionIdle = absl::Hours(1);
// Descriptors that a server without clients opens, about.
constexpr int kLeastDescriptors = 32;
// Threads that wait for calls, besides those that carry calls out: gRPC has as
// many for each core otherwise.
constexpr int kCallQueues = 1;
constexpr int kMostWaitingThreads = 4;

void LimitClients(const RpcServer::ClientLimits& limits,
                  grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("clients");
  quota.Resize(limits.transport_bytes);
  quota.SetMaxThreads(limits.threads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             limits.calls_per_connection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             absl::ToInt64Milliseconds(kMaxConnectionIdle));
  for (const grpc_compression_algorithm algorithm :
       {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  using Option = grpc::ServerBuilder::SyncServerOption;
  builder.SetSyncServerOption(Option::NUM_CQS, kCallQueues);
  builder.SetSyncServerOption(Option::MIN_POLLERS, 1);
  builder.SetSyncServerOption(Option::MAX_POLLERS, kMostWaitingThreads);
}

void SetProtocol(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  for (const auto& [name, value] : TensorArguments()) {
    builder.AddChannelArgument(name, value);
  }
  // Otherwise a second process on the same port gets half of the connections
  // instead of an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A peer whose machine is gone frees its streams within a lease; clients may
  // ping as often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             absl::ToInt64Milliseconds(kKeepaliveTime));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             absl::ToInt64Milliseconds(kKeepaliveTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      absl::ToInt64Milliseconds(kKeepaliveTime / 5));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, std::vector<grpc::Service*> services,
    std::shared_ptr<const Trust> trust) {
  return StartWith(address, services, ClientLimits(), trust.get());
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, std::vector<grpc::Service*> services,
    const ClientLimits& limits) {
  return StartWith(address, services, limits, /*trust=*/nullptr);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::StartWith(
    const std::string& address, const std::vector<grpc::Service*>& services,
    const ClientLimits& limits, const Trust* trust) {
  auto server = std::unique_ptr<RpcServer>(new RpcServer);
  grpc::ServerBuilder builder;
  if (services.empty()) {
    // gRPC starts no server without methods, and does not count health.
    server->no_methods_ = std::make_unique<grpc::CallbackGenericService>();
    builder.RegisterCallbackGenericService(server->no_methods_.get());
  }
  LimitClients(limits, builder);
  RETURN_IF_ERROR(server->Build(address, services, trust, builder));
  return server;
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, PolledService& service,
    const PollingOptions& options) {
  auto server = std::unique_ptr<RpcServer>(new RpcServer);
  grpc::ServerBuilder builder;
  LimitClients(options.limits, builder);
  std::vector<grpc::ServerCompletionQueue*> queues;
  for (int i = 0; i < options.threads; ++i) {
    auto queue = builder.AddCompletionQueue();
    queues.push_back(queue.get());
    server->threads_.push_back(
        std::make_unique<CompletionThread>(std::move(queue)));
  }
  RETURN_IF_ERROR(server->Build(address, {&service.service()},
                                options.trust.get(), builder));
  server->polled_ = &service;
  for (grpc::ServerCompletionQueue* queue : queues) service.AcceptOn(*queue);
  return server;
}

absl::Status RpcServer::Build(const std::string& address,
                              const std::vector<grpc::Service*>& services,
                              const Trust* trust,
                              grpc::ServerBuilder& builder) {
  ASSIGN_OR_RETURN(const HostPort split, Split(address));
  // "localhost" is two addresses, and gRPC is content when one of them is free.
  const std::string listen_on = split.host == "localhost"
                                    ? absl::StrCat("127.0.0.1:", split.port)
                                    : address;
  QuietLibraryLog();
  RETURN_IF_ERROR(CheckDescriptorsAreLeft(kLeastDescriptors))
      << "can't listen on " << address;
  grpc::EnableDefaultHealthCheckService(true);
  SetProtocol(builder);
  builder.AddListeningPort(listen_on,
                           trust == nullptr ? grpc::InsecureServerCredentials()
                                            : trust->ServerCredentials(),
                           &port_);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    RETURN_IF_ERROR(CheckThreadsAllowed(1)) << "can't listen on " << address;
    return absl::InvalidArgumentError(
        absl::StrCat("can't listen on ", address,
                     ": the port is in use, or the host is not this machine"));
  }
  SetServing(false);
  return absl::OkStatus();
}

RpcServer::RpcServer() = default;

RpcServer::~RpcServer() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

void RpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void RpcServer::Stop(absl::Duration grace) {
  server_->GetHealthCheckService()->Shutdown();
  server_->Shutdown(DeadlineIn(grace));
  if (polled_ != nullptr) polled_->AwaitNoCalls();
  threads_.clear();
}

std::string RpcServer::ListenAddress(const std::string& address) {
  absl::StatusOr<HostPort> split = Split(address);
  if (!split.ok() || IsLoopback(address)) return address;
  return absl::StrCat("[::]:", split->port);
}

}  // namespace parasol
