#ifndef PARASOL_WORKER_FAILURE_REPORT_H_
#define PARASOL_WORKER_FAILURE_REPORT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// Tells the chief of a failure of `task` that no retry mends: the job ends, as
// one of bad configuration if the task's is and it has not begun. A
// chief that has just been started again knows the task only after its next
// heartbeat, so it is told several times, with `wait` in between.
void ReportFailure(ChiefClient& chief, const wire::Task& task,
                   const absl::Status& failure, bool has_begun,
                   const std::function<void(absl::Duration)>& wait);

}  // namespace parasol

#endif  // PARASOL_WORKER_FAILURE_REPORT_H_
