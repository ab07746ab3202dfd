#ifndef PARASOL_COORDINATOR_WATCH_STATUS_LOG_H_
#define PARASOL_COORDINATOR_WATCH_STATUS_LOG_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/log_fields.h"
#include "proto/chief.pb.h"

namespace parasol {

// The lines about the job in the chief's log. They tell each change of its
// phase, and every kInterval its progress, or the tasks that it waits for and
// what keeps it from going on. From kLeaveTime behind the job's end on they
// name, every kInterval, the tasks that have yet to leave. Pure.
class StatusLog {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(10);
  // Time in which tasks leave that hear of the end with their next heartbeat.
  static constexpr absl::Duration kLeaveTime = absl::Seconds(3);

  explicit StatusLog(absl::Time now) : next_(now + kInterval) {}

  // Returns the lines to be logged now.
  std::vector<std::string> Lines(const wire::JobStatus& status, absl::Time now);

 private:
  wire::JobPhase phase_ = wire::JOB_PHASE_UNSPECIFIED;
  absl::Time since_;
  absl::Time next_;
};

// Returns the numbers of those lines as fields: phase, step and end_step, loss,
// examples_per_second, as far as they are known.
LogFields JobFields(const wire::JobStatus& status);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WATCH_STATUS_LOG_H_
