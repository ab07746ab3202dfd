#ifndef PARASOL_CLUSTER_TRUST_KEY_MATERIAL_H_
#define PARASOL_CLUSTER_TRUST_KEY_MATERIAL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/trust/peer_identity.h"

typedef struct x509_store_st X509_STORE;

namespace parasol {

// The means by which a process proves who it is, and by which it looks at the
// proofs of others. All in PEM.
struct KeyMaterial {
  // The process's certificate, and those between it and an authority's.
  std::string certificates;
  std::string private_key;
  std::string authorities;

  friend bool operator==(const KeyMaterial&, const KeyMaterial&) = default;
};

// The side of a connection that a certificate's owner is on.
enum class PeerSide { kClient, kServer };

// The authorities whose certificates a process accepts. Thread-safe.
class Authorities {
 public:
  //   InvalidArgument  `pem` has no certificate, or one that is damaged.
  static absl::StatusOr<std::shared_ptr<const Authorities>> Parse(
      absl::string_view pem);
  ~Authorities();
  Authorities(const Authorities&) = delete;
  Authorities& operator=(const Authorities&) = delete;

  // Returns the identity in a peer's certificate, the first one of
  // `certificates` (PEM). That the peer has the certificate's key is the
  // handshake's to prove.
  //   Unauthenticated  the certificate has expired, is not valid yet, is none
  //                    of these authorities, may not be used on that side, or
  //                    says no identity. The message continues
  //                    "the certificate …".
  absl::StatusOr<PeerIdentity> Verify(absl::string_view certificates,
                                      PeerSide side, absl::Time now) const;

 private:
  explicit Authorities(X509_STORE* store) : store_(store) {}

  X509_STORE* const store_;
};

// Returns the identity that the material proves.
//   InvalidArgument  there is no certificate or key in it, the key is not the
//                    certificate's, or peers with the same authorities would
//                    refuse it.
absl::StatusOr<PeerIdentity> IdentityOf(const KeyMaterial& material,
                                        absl::Time now);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_KEY_MATERIAL_H_
