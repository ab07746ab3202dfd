#ifndef PARASOL_WORKER_CLAIM_LOOP_H_
#define PARASOL_WORKER_CLAIM_LOOP_H_

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// One ClaimSteps call after the other, on a thread of its own, until the job
// has no more steps, has failed, or Stop(). A call that fails is repeated, as
// long as that can change anything. What a call asks, and what becomes of the
// answer, is the derived class's, whose functions are called under `mu_`.
//
// Shutdown: the derived class calls Begin() last in its constructor and End()
// first in its destructor.
class ClaimLoop {
 public:
  struct Options {
    wire::Task task;
    int64_t train_examples = 0;
    // Between two calls while there is something to compute.
    absl::Duration report_interval = absl::Milliseconds(100);
    // The longest that a call waits at the chief; End() waits for it.
    absl::Duration claim_wait = absl::Seconds(1);
  };

  ClaimLoop(const ClaimLoop&) = delete;
  ClaimLoop& operator=(const ClaimLoop&) = delete;

 protected:
  // `chief` and `clock` outlive it.
  ClaimLoop(Options options, ChiefClient& chief, Clock& clock);
  ~ClaimLoop() = default;

  void Begin();
  // Stops, and joins the thread.
  void End();

  void StopLoop() ABSL_LOCKS_EXCLUDED(mu_);

  // Why nothing is to be computed any more, though the job is not over.
  //   Cancelled           stopped.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  absl::Status Fault() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fault() is an error, or the job has no more steps.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() || no_more_;
  }
  absl::Duration report_interval() const { return options_.report_interval; }
  bool no_more() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return no_more_; }

  mutable absl::Mutex mu_;

 private:
  // Of a job that has no more steps: nothing is left to report.
  virtual bool IsAllReported() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Worth a call before the interval is over.
  virtual bool IsUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Fills in what the next call says; `since_last` is the time since the last
  // one was made, without end before the first one.
  virtual void Ask(absl::Duration since_last, wire::ClaimStepsRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Whether that call may wait at the chief.
  virtual bool MayWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  virtual void Take(const wire::ClaimStepsResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

  bool ShouldEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ShouldCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ShouldEnd() || IsUrgent();
  }
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  wire::ClaimStepsRequest NextRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  ChiefClient& chief_;
  Clock& clock_;
  bool no_more_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Time last_call_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_CLAIM_LOOP_H_
