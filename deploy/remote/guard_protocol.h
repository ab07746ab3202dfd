#ifndef PARASOL_DEPLOY_REMOTE_GUARD_PROTOCOL_H_
#define PARASOL_DEPLOY_REMOTE_GUARD_PROTOCOL_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The bytes that a launcher sends to the guard of a task on another host.
namespace parasol {

// Sign of life. Any byte is one.
inline constexpr absl::string_view kBeat = ".";
// Request to send the task SIGTERM.
inline constexpr absl::string_view kTerminate = "T";

inline constexpr absl::Duration kBeatPeriod = absl::Seconds(5);
// Longest silence before the guard kills its task. A launcher finds a broken
// connection later than that (kServerAlive… in remote_command.cc), so that the
// task is gone before it is started again.
inline constexpr absl::Duration kSilenceLimit = absl::Seconds(60);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_REMOTE_GUARD_PROTOCOL_H_
