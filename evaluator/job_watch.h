#ifndef PARASOL_EVALUATOR_JOB_WATCH_H_
#define PARASOL_EVALUATOR_JOB_WATCH_H_

#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_session.h"

namespace parasol {

// Watches the job's outcome through a session, on a thread of its own. Leaves
// the cluster as soon as the job has ended: the chief waits for its tasks to
// leave, and must not wait for the evaluations that are left. Thread-safe.
class JobWatch {
 public:
  // `session` and `clock` must outlive this object.
  JobWatch(ChiefSession& session, Clock& clock);
  // Stops watching, and joins the thread.
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  // Returns the job's outcome; nullopt while the job goes on.
  //   OK                  the job is complete.
  //   FailedPrecondition  the job has failed, and the message says why; or
  //                       another process has taken this task's place.
  //   Unavailable         the chief is lost: the job may be complete.
  //   Cancelled           Stop() was called, before or after the job's end.
  std::optional<absl::Status> end() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the job was known to be complete when the watch began: its
  // chief had ended before this task was started.
  bool was_complete() const { return was_complete_; }

  // Blocks for `duration`, or until end() changes.
  void Pause(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mu_);

  // Stops watching. May be called twice, from any thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();

  ChiefSession& session_;
  Clock& clock_;
  const bool was_complete_;
  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);  // end of the job
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_JOB_WATCH_H_
