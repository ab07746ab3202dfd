#include "cluster/trust/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/trust/openssl_handles.h"

namespace parasol {
namespace {

using SslContext = openssl::Handle<SSL_CTX, SSL_CTX_free>;

openssl::Bio BioOf(const std::string& text) {
  return openssl::Bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Returns why OpenSSL has refused something, and forgets it.
absl::Status Refusal(absl::string_view what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": ", reason == nullptr ? "OpenSSL does not take it" : reason));
}

// The look at a peer's certificates comes behind the handshake, which proves
// that the peer has the key.
int AcceptForNow(X509_STORE_CTX*, void*) { return 1; }

void SetOptions(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // AES-128-GCM is the fastest with the instructions of today's processors.
  SSL_CTX_set_ciphersuites(context,
                           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                           "TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_cert_verify_callback(context, AcceptForNow, nullptr);
  // A connection is made once.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
}

// Puts the process's own certificate, and those behind it, into the context.
absl::Status UseCertificates(const std::string& pem, SSL_CTX* context) {
  const openssl::Bio text = BioOf(pem);
  openssl::Certificate own(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return Refusal("the certificate");
  }
  while (true) {
    openssl::Certificate next(
        PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) {
      return Refusal("a certificate of the chain");
    }
    (void)next.release();  // it is the context's
  }
  ERR_clear_error();  // the end of the text is one
  return absl::OkStatus();
}

absl::StatusOr<SslContext> MakeSslContext(const KeyMaterial& material,
                                          const SSL_METHOD* method) {
  SslContext context(SSL_CTX_new(method));
  CHECK(context != nullptr);
  SetOptions(context.get());
  RETURN_IF_ERROR(UseCertificates(material.certificates, context.get()));
  const openssl::Bio text = BioOf(material.private_key);
  const openssl::Key key(
      PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Refusal("the key");
  }
  return context;
}

}  // namespace

std::string ExpectedPeer::ToString() const {
  return index.has_value() ? absl::StrCat(PeerRoleName(role), "/", *index)
                           : absl::StrCat("a ", PeerRoleName(role));
}

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(
    const KeyMaterial& material, const PeerIdentity& identity) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Authorities> authorities,
                   Authorities::Parse(material.authorities));
  ASSIGN_OR_RETURN(SslContext client,
                   MakeSslContext(material, TLS_client_method()));
  ASSIGN_OR_RETURN(SslContext server,
                   MakeSslContext(material, TLS_server_method()));
  return std::shared_ptr<const TlsContext>(new TlsContext(
      identity, std::move(authorities), client.release(), server.release()));
}

TlsContext::TlsContext(PeerIdentity identity,
                       std::shared_ptr<const Authorities> authorities,
                       SSL_CTX* client, SSL_CTX* server)
    : identity_(std::move(identity)),
      authorities_(std::move(authorities)),
      client_(client),
      server_(server) {}

TlsContext::~TlsContext() {
  SSL_CTX_free(client_);
  SSL_CTX_free(server_);
}

SSL* TlsContext::NewConnection(PeerSide own) const {
  const bool is_client = own == PeerSide::kClient;
  SSL* const connection = SSL_new(is_client ? client_ : server_);
  CHECK(connection != nullptr);
  is_client ? SSL_set_connect_state(connection)
            : SSL_set_accept_state(connection);
  return connection;
}

absl::Status TlsContext::CheckPeer(absl::string_view certificates,
                                   PeerSide side, const ExpectedPeer& peer,
                                   absl::Time now) const {
  const absl::StatusOr<PeerIdentity> shown =
      authorities_->Verify(certificates, side, now);
  if (!shown.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate ", shown.status().message()));
  }
  const bool is_expected = shown->job == identity_.job &&
                           shown->role == peer.role &&
                           shown->index == peer.index.value_or(shown->index);
  if (is_expected) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate is ", shown->ToString(), ", not ",
                   peer.ToString(), " of ", identity_.job));
}

}  // namespace parasol
