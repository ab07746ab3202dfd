#ifndef PARASOL_CLUSTER_TRUST_TLS_CONTEXT_H_
#define PARASOL_CLUSTER_TRUST_TLS_CONTEXT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/trust/key_material.h"
#include "cluster/trust/peer_identity.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace parasol {

// The task that has to be at the other end of a connection.
struct ExpectedPeer {
  PeerRole role = PeerRole::kUnknown;
  std::optional<int> index = std::nullopt;  // nullopt: any of the role

  // Returns "worker/1" or "a worker".
  std::string ToString() const;
};

// The keys with which connections of TLS 1.3 begin, where no gRPC is between:
// this process's certificate, and the authorities of its peers'. Immutable, so
// thread-safe.
class TlsContext {
 public:
  //   InvalidArgument  OpenSSL takes no certificate, or not the key, or there
  //                    is no authority.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Make(
      const KeyMaterial& material, const PeerIdentity& identity);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  const PeerIdentity& identity() const { return identity_; }

  // Returns a connection that has not begun, of which this process is `own`
  // side; who has connected is the client. The caller frees it.
  SSL* NewConnection(PeerSide own) const;

  // Looks at the certificates that a peer has shown, PEM.
  //   Unauthenticated  they are not `peer`'s, of this process's job; "the
  //                    certificate …".
  absl::Status CheckPeer(absl::string_view certificates, PeerSide side,
                         const ExpectedPeer& peer, absl::Time now) const;

 private:
  TlsContext(PeerIdentity identity,
             std::shared_ptr<const Authorities> authorities, SSL_CTX* client,
             SSL_CTX* server);

  const PeerIdentity identity_;
  const std::shared_ptr<const Authorities> authorities_;
  SSL_CTX* const client_;
  SSL_CTX* const server_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TLS_CONTEXT_H_
