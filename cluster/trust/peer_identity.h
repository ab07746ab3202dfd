#ifndef PARASOL_CLUSTER_TRUST_PEER_IDENTITY_H_
#define PARASOL_CLUSTER_TRUST_PEER_IDENTITY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// A process's part in a job, as its certificate says.
enum class PeerRole {
  // Nobody whom the rules name: may do nothing.
  kUnknown,
  kChief,
  kPs,
  kWorker,
  kEvaluator,
  // A person with the tool `parasol`.
  kOperator,
};

// Returns "chief", "ps", "worker", "evaluator", "operator" or "unknown".
absl::string_view PeerRoleName(PeerRole role);
PeerRole PeerRoleOf(Role role);

// The identity of the process at the other end of a connection, as proven.
struct PeerIdentity {
  std::string job;
  PeerRole role = PeerRole::kUnknown;
  int index = 0;

  // Returns "worker/1 of mnist".
  std::string ToString() const;

  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// Returns the identity that a certificate with these names in its subject
// alternative name says, or nullopt if it says none or several. One rule
// (docs/security.md):
//   URI  spiffe://<trust domain>/<job>/<role>/<index>
//   DNS  a name whose first label is <job>-<role>-<index>, the name of a
//        StatefulSet's pod, or <job>-<role>-<number>-<index>, a JobSet's
// with a role as PeerRoleName() says it, or "master" for a chief. Where a URI
// says an identity, DNS names are not looked at.
std::optional<PeerIdentity> IdentityInNames(
    const std::vector<std::string>& uri_names,
    const std::vector<std::string>& dns_names);

// Returns the identity's URI in `trust_domain`; IdentityInNames() inverts it.
std::string IdentityUri(const PeerIdentity& identity,
                        absl::string_view trust_domain);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_PEER_IDENTITY_H_
