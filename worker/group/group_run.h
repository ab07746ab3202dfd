#ifndef PARASOL_WORKER_GROUP_GROUP_RUN_H_
#define PARASOL_WORKER_GROUP_GROUP_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/collective/collective.h"
#include "worker/group/step_group.h"

namespace parasol {

// A group that this worker has joined: its collective operations, and waits
// that end with it. Thread-safe; one thread makes steps.
class GroupRun {
 public:
  // `clock` must outlive this object.
  GroupRun(StepGroup group, std::unique_ptr<Collective> collective,
           Clock& clock)
      : group_(std::move(group)),
        collective_(std::move(collective)),
        clock_(clock) {}

  const StepGroup& group() const { return group_; }
  Collective& collective() { return *collective_; }
  // Returns the same for who may keep it longer than the run.
  std::shared_ptr<Collective> shared_collective() { return collective_; }

  // Returns the error with which a group ends that is over on this worker.
  static absl::Status SupersededError() {
    return absl::CancelledError("another assignment of replicas");
  }
  // Say that the chief has named a later group, and that this worker is told to
  // stop: nothing more is begun, but what is there by then in the latter case.
  void Supersede() ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Has AwaitOwn() look again.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mu_) { absl::MutexLock lock(&mu_); }

  // Returns the error with which the group or this worker has ended.
  absl::Status CheckMayGoOn() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until this worker's part of an operation is there. `are_there` must
  // not use this object.
  //   Cancelled  the group is over, or the worker is told to stop.
  //   any other  as for Collective::status().
  absl::Status AwaitOwn(const std::function<bool()>& are_there)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Counts an operation that is about to begin; returns what it calls when it
  // has ended.
  Collective::Done Count() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when all ranks have come here, and what this one began before is
  // complete.
  absl::Status AwaitAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until no operation uses memory of who has begun it. The group has
  // ended on this rank because of `why`.
  void Release(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const StepGroup group_;
  const std::shared_ptr<Collective> collective_;
  Clock& clock_;
  std::vector<std::string> met_;  // answers to AwaitAll()

  absl::Mutex mu_;
  int pending_ ABSL_GUARDED_BY(mu_) = 0;
  bool has_failed_ ABSL_GUARDED_BY(mu_) = false;  // an operation has
  bool is_superseded_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_RUN_H_
