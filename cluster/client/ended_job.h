#ifndef PARASOL_CLUSTER_CLIENT_ENDED_JOB_H_
#define PARASOL_CLUSTER_CLIENT_ENDED_JOB_H_

#include <optional>
#include <string>

#include "proto/chief.pb.h"

namespace parasol {

// Returns what the chief of a job would have answered to a registration that
// has ended with the last checkpoint in `directory`; nullopt if it may go on,
// or the directory says nothing. Says in the log which it is.
std::optional<wire::RegisterResponse> RegistrationOfEndedJob(
    const std::string& directory);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_ENDED_JOB_H_
