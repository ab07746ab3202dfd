#ifndef PARASOL_TOOL_STATUS_ASKED_CHIEF_H_
#define PARASOL_TOOL_STATUS_ASKED_CHIEF_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

// Checks a flag of the tool that is a time.
absl::Status CheckDuration(const char* flag, absl::Duration value);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_ASKED_CHIEF_H_
