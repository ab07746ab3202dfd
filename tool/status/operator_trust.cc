#include "tool/status/operator_trust.h"

#include "base/clock.h"
#include "cluster/trust/token_store.h"
#include "cluster/trust/trust_flags.h"

namespace parasol {

absl::StatusOr<std::shared_ptr<const Trust>> TrustOfOperator(
    const std::string& chief_address) {
  TrustSettings settings = TrustSettingsOfFlags();
  if (!settings.has_keys() && !settings.insecure) {
    settings.token_file =
        FindToken(TokenFoldersOfUser(), chief_address).value_or("");
  }
  return settings.Open(PeerRole::kOperator, /*index=*/0, Clock::Real());
}

}  // namespace parasol
