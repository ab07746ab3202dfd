#ifndef PARASOL_COORDINATOR_TASK_MESSAGE_H_
#define PARASOL_COORDINATOR_TASK_MESSAGE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/chief.pb.h"

namespace parasol {

// Longest role, address or run id that a task may send.
inline constexpr size_t kMaxTaskText = 256;
// Longest message of a failure that is kept.
inline constexpr size_t kMaxFailureText = 1024;

// Return InvalidArgument if a message of a task has a text that is too long,
// or has characters that do not belong on one line, or if it comes from a task
// of another role than the rpc is for; FailedPrecondition if it counts steps as
// no process does.
absl::Status CheckMessage(const wire::RegisterRequest& request);
absl::Status CheckMessage(const wire::ClaimStepsRequest& request);
absl::Status CheckMessage(const wire::GetPlacementRequest& request);
absl::Status CheckMessage(const wire::ReportFailureRequest& request);
absl::Status CheckTask(const wire::Task& task);

// Returns a failure's message as one line of at most kMaxFailureText bytes.
std::string FailureLine(absl::string_view message);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TASK_MESSAGE_H_
