#ifndef PARASOL_CLUSTER_CLIENT_WAIT_LOG_H_
#define PARASOL_CLUSTER_CLIENT_WAIT_LOG_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// Names, for a task's log, what the job waits for. Pure: time is an argument.
class WaitLog {
 public:
  // Time between two lines, and before the first one of a wait.
  static constexpr absl::Duration kInterval = absl::Seconds(10);

  // Returns the line that is due, if any, after an answer of the chief:
  // "waiting for ps/1, since 20s (TRAINING)", or "waiting for the chief to
  // write the last checkpoint, since 6m10s: no checkpoint of step 600 in 7
  // attempts: …". There is none while the job trains and no task is missing.
  std::optional<std::string> Line(const wire::HeartbeatResponse& state,
                                  absl::Time now);

 private:
  // The tasks or the work that the job waits for; empty: nothing.
  std::string what_;
  absl::Time since_;
  absl::Time next_;
};

// Returns the tasks that the chief misses as a list: "ps/1, ps/3".
std::string MissingTasksOf(const wire::HeartbeatResponse& state);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_WAIT_LOG_H_
