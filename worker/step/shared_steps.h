#ifndef PARASOL_WORKER_STEP_SHARED_STEPS_H_
#define PARASOL_WORKER_STEP_SHARED_STEPS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/step/replica_source.h"

namespace parasol {

// The steps that all replicas of a process do. Whether there is another step is
// decided once, when the first replica asks for it: all replicas end after the
// same step. Thread-safe.
class SharedSteps {
 public:
  // `is_over` says, given the number of completed steps, that there are no
  // more. It is called by one thread at a time.
  SharedSteps(int64_t completed, std::function<bool(int64_t)> is_over)
      : is_over_(std::move(is_over)), end_(completed) {}

  // Returns true if the step after `completed` ones is to be done.
  bool HasStepAfter(int64_t completed) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::function<bool(int64_t)> is_over_;
  absl::Mutex mu_;
  // The steps before this one are to be done.
  int64_t end_ ABSL_GUARDED_BY(mu_);
  bool is_final_ ABSL_GUARDED_BY(mu_) = false;
};

// The source of the steps of one replica, which its thread computes for good.
// All but Stop() must be called on that thread.
class SharedStepsOfReplica : public ReplicaSource {
 public:
  // `steps` must outlive this object. The replica has done `completed` steps.
  SharedStepsOfReplica(int replica, int64_t completed, SharedSteps& steps)
      : replica_(replica), steps_(steps), completed_(completed) {}

  absl::StatusOr<std::optional<ReplicaShare>> Await() override;
  absl::StatusOr<ReplicaShare> Now() override;
  void Complete(int64_t steps) override;
  void Pushed(int64_t) override {}
  void Stop() override { stopped_ = true; }

 private:
  const int replica_;
  SharedSteps& steps_;
  int64_t completed_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_SHARED_STEPS_H_
