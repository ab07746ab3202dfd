#ifndef PARASOL_CLUSTER_TRUST_CERTIFICATE_ISSUER_H_
#define PARASOL_CLUSTER_TRUST_CERTIFICATE_ISSUER_H_

#include <string>

#include "cluster/trust/job_token.h"
#include "cluster/trust/key_material.h"
#include "cluster/trust/openssl_handles.h"
#include "cluster/trust/peer_identity.h"

namespace parasol {

// An authority whose key is in this process. Authorities with the same seed and
// name accept each other's certificates.
class CertificateIssuer {
 public:
  // `name` is 64 characters at most.
  CertificateIssuer(const DerivedKey& seed, const std::string& name);

  struct Subject {
    std::string name = "parasol";  // 64 characters at most
    // Names as OpenSSL's configuration files have them: "URI:spiffe://…,DNS:…".
    std::string alternative_names = {};
    // YYYYMMDDHHMMSSZ.
    std::string not_before = "20000101000000Z";
    std::string not_after = "99991231235959Z";
    std::string key_usage = "digitalSignature";
    std::string extended_key_usage = {};  // empty: any
  };
  // Draws a key and issues its certificate.
  KeyMaterial Issue(const Subject& subject) const;

 private:
  const std::string name_;
  const openssl::Key key_;
  const openssl::Certificate certificate_;
};

// Returns material for a task of the token's job. Its authority is a key that
// is derived from the token: whoever has the token has the same authority, and
// nobody else can issue what it accepts. The process's own key is drawn. The
// certificate is valid for as long as the token is: whoever has that can issue
// another one at any time.
KeyMaterial IssueByToken(const JobToken& token, PeerRole role, int index);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_CERTIFICATE_ISSUER_H_
