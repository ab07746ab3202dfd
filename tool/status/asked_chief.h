#ifndef PARASOL_TOOL_STATUS_ASKED_CHIEF_H_
#define PARASOL_TOOL_STATUS_ASKED_CHIEF_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// Returns a client of the chief at `address` whose calls take --timeout at
// most.
//   InvalidArgument  it is no address, or --timeout is out of its range.
absl::StatusOr<std::unique_ptr<ChiefClient>> ChiefToAsk(
    const std::string& address);

// Asks once. What answers and is no chief is a wrong address.
absl::StatusOr<wire::JobStatus> AskChief(ChiefClient& chief);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_ASKED_CHIEF_H_
