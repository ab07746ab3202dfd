#include "cluster/rpc/channel.h"

#include "absl/time/time.h"
#include "cluster/rpc/keepalive.h"
#include "cluster/rpc/library_log.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/tensor_arguments.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace parasol {
namespace {

grpc::ChannelArguments CommonArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A peer whose machine is gone is noticed within a lease.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   absl::ToInt64Milliseconds(kKeepaliveTime));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   absl::ToInt64Milliseconds(kKeepaliveTimeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // In spite of its name the limit of one attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  // A restarted pod has another address under the same name.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // Cluster addresses are named directly; a proxy of the environment is not
  // meant for them.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Our callers repeat calls, and know what may be repeated.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const Callee& callee,
    const grpc::ChannelArguments& arguments) {
  QuietLibraryLog();
  return grpc::CreateCustomChannel(
      address,
      callee.trust == nullptr ? grpc::InsecureChannelCredentials()
                              : callee.trust->ChannelCredentials(callee.tasks),
      arguments);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeControlChannel(const std::string& address,
                                                  const Callee& callee) {
  return MakeChannel(address, callee, CommonArguments());
}

std::shared_ptr<grpc::Channel> MakeTensorChannel(const std::string& address,
                                                 const Callee& callee) {
  grpc::ChannelArguments arguments = CommonArguments();
  for (const auto& [name, value] : TensorArguments()) {
    arguments.SetInt(name, value);
  }
  return MakeChannel(address, callee, arguments);
}

void ReconnectNow(grpc::Channel& channel) {
  grpc::experimental::ChannelResetConnectionBackoff(&channel);
}

}  // namespace parasol
