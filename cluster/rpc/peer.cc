#include "cluster/rpc/peer.h"

#include <memory>
#include <string>
#include <vector>

#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"

namespace parasol {
namespace {

std::vector<std::string> PropertyOf(const grpc::AuthContext& context,
                                    const std::string& name) {
  std::vector<std::string> values;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    values.emplace_back(value.data(), value.size());
  }
  return values;
}

bool IsClearText(const grpc::AuthContext& context) {
  const std::vector<std::string> security =
      PropertyOf(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return security.empty() || security == std::vector<std::string>{"insecure"};
}

}  // namespace

std::optional<PeerIdentity> PeerOf(const grpc::ServerContextBase& call) {
  const std::shared_ptr<const grpc::AuthContext> context = call.auth_context();
  if (context == nullptr || IsClearText(*context)) return std::nullopt;
  return IdentityInNames(PropertyOf(*context, GRPC_PEER_URI_PROPERTY_NAME),
                         PropertyOf(*context, GRPC_PEER_DNS_PROPERTY_NAME))
      .value_or(PeerIdentity());
}

}  // namespace parasol
