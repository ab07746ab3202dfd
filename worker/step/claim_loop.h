#ifndef PARASOL_WORKER_STEP_CLAIM_LOOP_H_
#define PARASOL_WORKER_STEP_CLAIM_LOOP_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"
#include "worker/step/training_files.h"

namespace parasol {

// Makes one ClaimSteps call after the other, on a thread of its own, until the
// job is complete, the job has failed, or Stop() is called. A call that fails
// is repeated as long as a repetition can succeed. The derived class writes
// each request and uses each answer; its functions are called while `mu_` is
// held.
//
// Calls go on while the chief writes the last checkpoint: from them a chief
// that has restarted learns how far the job is. It may grant steps again that
// were done by a worker that is gone.
//
// Shutdown: the derived class calls Begin() last in its constructor and End()
// first in its destructor.
class ClaimLoop {
 public:
  struct Options {
    wire::Task task;
    int64_t train_examples = 0;
    // The field of ClaimStepsRequest.
    std::vector<int64_t> shard_examples;
    // Files of a training set that grows, which answers name; null: it does not
    // grow. Must outlive the loop.
    TrainingFiles* files = nullptr;
    // Time between two calls while there is something to compute.
    absl::Duration report_interval = absl::Milliseconds(100);
    // Longest time that a call waits at the chief; End() waits for it.
    absl::Duration claim_wait = absl::Seconds(1);
    // Time between two calls while the chief writes the last checkpoint.
    absl::Duration finishing_interval = absl::Seconds(1);
  };

  ClaimLoop(const ClaimLoop&) = delete;
  ClaimLoop& operator=(const ClaimLoop&) = delete;

 protected:
  // `chief` and `clock` must outlive this object.
  ClaimLoop(Options options, ChiefClient& chief, Clock& clock);
  ~ClaimLoop() = default;

  void Begin();
  // Stops the loop, and joins its thread.
  void End();

  void StopLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the worker registers.
  void Registers();

  // Returns OK while there is something to compute, and after the job's end.
  // Otherwise the reason for which the worker must stop:
  //   Cancelled           StopLoop() was called.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  absl::Status Fault() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if Fault() is an error or the job is complete.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() || no_more_;
  }
  absl::Duration report_interval() const { return options_.report_interval; }
  bool no_more() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return no_more_; }
  // Returns true while, by the chief's last answer, every step is done and no
  // other may be started.
  bool is_finishing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_finishing_;
  }

  mutable absl::Mutex mu_;

 private:
  // Returns true if a job that is complete leaves nothing to report.
  virtual bool IsAllReported() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Returns true if the next call should be made before report_interval is
  // over.
  virtual bool IsUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Fills in the next call's request. `since_last` is the time since the
  // previous call was made; infinite before the first call.
  virtual void Ask(absl::Duration since_last, wire::ClaimStepsRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Returns true if the next call may wait at the chief for something to
  // compute.
  virtual bool MayWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  virtual void Take(const wire::ClaimStepsResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

  bool ShouldEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration Interval() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_finishing_ ? options_.finishing_interval
                         : options_.report_interval;
  }
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
  bool is_finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Time last_call_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_CLAIM_LOOP_H_
