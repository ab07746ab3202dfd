#include "cluster/trust/peer_identity.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr PeerRole kNamedRoles[] = {PeerRole::kChief, PeerRole::kPs,
                                    PeerRole::kWorker, PeerRole::kEvaluator,
                                    PeerRole::kOperator};

PeerRole PeerRoleNamed(absl::string_view name) {
  for (const PeerRole role : kNamedRoles) {
    if (name == PeerRoleName(role)) return role;
  }
  return name == "master" ? PeerRole::kChief : PeerRole::kUnknown;
}

// Returns the number that `text` writes in the one way that there is.
std::optional<int> IndexIn(absl::string_view text) {
  int index = 0;
  if (!absl::SimpleAtoi(text, &index) || index < 0 ||
      text != absl::StrCat(index)) {
    return std::nullopt;
  }
  return index;
}

std::optional<PeerIdentity> MakeIdentity(absl::string_view job,
                                         absl::string_view role,
                                         absl::string_view index) {
  const std::optional<int> number = IndexIn(index);
  PeerIdentity identity = {.job = std::string(job),
                           .role = PeerRoleNamed(role)};
  if (job.empty() || identity.role == PeerRole::kUnknown || !number) {
    return std::nullopt;
  }
  identity.index = *number;
  return identity;
}

std::optional<PeerIdentity> IdentityInUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, "spiffe://")) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(uri, '/');
  if (parts.size() != 4 || parts[0].empty()) return std::nullopt;
  return MakeIdentity(parts[1], parts[2], parts[3]);
}

// Takes "-<last part>" off a name; returns the part, empty if there is none.
absl::string_view TakeLastPart(absl::string_view& name) {
  const size_t dash = name.rfind('-');
  if (dash == absl::string_view::npos) return "";
  const absl::string_view last = name.substr(dash + 1);
  name = name.substr(0, dash);
  return last;
}

std::optional<PeerIdentity> IdentityInDnsName(absl::string_view dns_name) {
  const std::string lower = absl::AsciiStrToLower(dns_name);
  absl::string_view name = lower;
  name = name.substr(0, name.find('.'));
  const absl::string_view index = TakeLastPart(name);
  absl::string_view role = TakeLastPart(name);
  if (IndexIn(role)) role = TakeLastPart(name);
  return MakeIdentity(name, role, index);
}

// Returns the identity that the names agree on.
template <typename Parse>
std::optional<PeerIdentity> OneIdentity(const std::vector<std::string>& names,
                                        Parse parse, bool& several) {
  std::optional<PeerIdentity> found;
  for (const std::string& name : names) {
    std::optional<PeerIdentity> identity = parse(name);
    if (!identity) continue;
    several |= found && *found != *identity;
    found = std::move(identity);
  }
  return found;
}

}  // namespace

absl::string_view PeerRoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kChief:
      return "chief";
    case PeerRole::kPs:
      return "ps";
    case PeerRole::kWorker:
      return "worker";
    case PeerRole::kEvaluator:
      return "evaluator";
    case PeerRole::kOperator:
      return "operator";
    case PeerRole::kUnknown:
      return "unknown";
  }
  return "unknown";
}

PeerRole PeerRoleOf(Role role) { return PeerRoleNamed(RoleName(role)); }

std::string PeerIdentity::ToString() const {
  return absl::StrCat(PeerRoleName(role), "/", index, " of ", job);
}

std::optional<PeerIdentity> IdentityInNames(
    const std::vector<std::string>& uri_names,
    const std::vector<std::string>& dns_names) {
  bool several = false;
  std::optional<PeerIdentity> found =
      OneIdentity(uri_names, IdentityInUri, several);
  if (!found) found = OneIdentity(dns_names, IdentityInDnsName, several);
  return several ? std::nullopt : found;
}

std::string IdentityUri(const PeerIdentity& identity,
                        absl::string_view trust_domain) {
  return absl::StrCat("spiffe://", trust_domain, "/", identity.job, "/",
                      PeerRoleName(identity.role), "/", identity.index);
}

}  // namespace parasol
