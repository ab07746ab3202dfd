#ifndef PARASOL_TOOL_STATUS_OPERATOR_TRUST_H_
#define PARASOL_TOOL_STATUS_OPERATOR_TRUST_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/trust/trust.h"

namespace parasol {

// Returns the keys by which the tool asks the chief at an address: from the
// flags, or the token that a launcher of this user has made for a run with this
// address; null without any. Fails as TrustSettings::Open() does.
absl::StatusOr<std::shared_ptr<const Trust>> TrustOfOperator(
    const std::string& chief_address);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_OPERATOR_TRUST_H_
