#ifndef PARASOL_WORKER_SHOWN_LONE_INSPECTION_H_
#define PARASOL_WORKER_SHOWN_LONE_INSPECTION_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/inspection/task_inspection.h"
#include "coordinator/inspections.h"
#include "proto/chief.pb.h"

namespace parasol {

// The inspections of a process that is its own chief, and worker/0 to those who
// ask. No heartbeat tells it what to show: the thread that asks has it show
// that, and takes the stacks of the others. The other processes of a program
// hear of it with heartbeats. Thread-safe.
class LoneInspection {
 public:
  // `clock` must outlive this object.
  explicit LoneInspection(Clock& clock) : clock_(clock), own_(clock) {}

  // Records what the process does, while a trace is asked for.
  TraceRecorder& recorder() { return own_.recorder(); }
  // Has the stack of the calling thread shown first.
  void ShowThisThreadFirst() { own_.ShowThisThreadFirst(); }

  // Answers an Inspect of proto/chief.proto, given the other tasks that are
  // there. For stacks it takes a second at most.
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request, std::vector<std::string> others = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes what another task shows, and has it asked: Inspections::Exchange().
  void Exchange(absl::string_view task, const wire::HeartbeatRequest& request,
                wire::HeartbeatResponse& answer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void ShowItself() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  absl::Mutex mu_;
  // Used with the lock held, but for its recorder and the first thread.
  TaskInspection own_;
  Inspections inspections_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SHOWN_LONE_INSPECTION_H_
