#ifndef PARASOL_PS_STEP_STEP_STATE_H_
#define PARASOL_PS_STEP_STEP_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ps/step/latch.h"

namespace parasol {

// One gradient of a synchronous step, whichever worker computed it.
struct StepPush {
  int64_t step = 0;
  int replica = 0;
};

// The progress of a chunk or table that is trained synchronously: its step, the
// gradients of the current step that it has, and the operations that wait for
// it. The step is the number of updates that it has had. Not thread-safe: its
// owner's lock guards it. The latches that it adds to a Released are counted
// down after that lock is free.
//
// A restored state may be behind the workers: updates since the checkpoint are
// lost, and workers whose pushes were acknowledged won't send them again. It
// jumps, without updates, to the step that the chief says the cluster has
// completed. What a worker's request says does not move it.
class StepState {
 public:
  enum class Origin { kInitial, kRestored };

  StepState(int64_t updates, Origin origin)
      : updates_(updates), origin_(origin) {}

  int64_t updates() const { return updates_; }
  // Number of gradients of the current step that have come.
  size_t collected() const { return replicas_.size(); }

  // Returns OK if Enter() may be called for `step`.
  //   InvalidArgument  the gradient is of a step that has not begun.
  //   Unavailable      the same, of a restored state: the chief may not have
  //                    told yet where the cluster is. Send the gradient again.
  // After Abandon(), its status.
  absl::Status CheckNotAhead(int64_t step) const;

  enum class Entry {
    kNew,        // a gradient of the current step, not seen before
    kDuplicate,  // seen before, in the current step or in the last one
    kStale,      // too late: the step has its gradients without it
    kNoRoom,     // no memory for it now: not entered
  };
  // Returns true if Enter() would return kNew.
  bool IsNew(const StepPush& push, size_t wanted) const;
  // Enters the gradient of a step that takes `wanted` gradients. Call
  // CheckNotAhead() first.
  Entry Enter(const StepPush& push, size_t wanted);

  // Returns true if the current step has the `wanted` gradients and may be
  // completed now.
  bool IsDue(size_t wanted) const {
    // Nothing is left to apply after an update that failed.
    return abandoned_.ok() && collected() == wanted && updates_ < limit_;
  }

  // Completes the current step: its update was applied.
  void Complete(Released& released);

  // Lets no step be completed that makes more than `updates` updates, until
  // another Hold(). INT64_MAX: no limit. Ask IsDue() again after a higher one.
  void Hold(int64_t updates) { limit_ = updates; }

  // Jumps to `updates` if this is a restored state that is behind. Returns true
  // if it does: the gradients that it had are dropped.
  bool GoOnAt(int64_t updates, Released& released);

  // Counts `latch` down at `updates`.
  void NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                Released& released);

  // Counts `latch` down when the step of `push` is complete. The gradient of
  // `push` must have been entered, in this or an earlier step.
  void NotifyWhenComplete(const StepPush& push, std::shared_ptr<Latch> latch,
                          Released& released);

  // Calls `capture`, under the owner's lock, at exactly `updates`, then counts
  // `latch` down; fails it with Aborted if the number of updates is past that.
  // One at a time for each `key`, which names the snapshot.
  void SnapshotAt(int64_t updates, std::function<void()> capture,
                  std::shared_ptr<Latch> latch, Released& released,
                  const void* key = nullptr);
  void CancelSnapshot(const void* key = nullptr);

  // Fails the latches that wait, and those that come later, with `status`.
  void Abandon(const absl::Status& status, Released& released);

 private:
  struct Waiter {
    int64_t updates = 0;
    bool has_gradient = false;
    std::shared_ptr<Latch> latch = nullptr;
  };
  struct PendingSnapshot {
    int64_t updates = 0;
    std::function<void()> capture = nullptr;
    std::shared_ptr<Latch> latch = nullptr;
    const void* key = nullptr;
  };

  void Advance(int64_t updates, Released& released);
  void SnapshotIfDue(Released& released);
  // Returns true if nothing is left to do for the snapshot.
  bool TakeIfDue(const PendingSnapshot& pending) const;
  void Wait(Waiter waiter, Released& released);

  int64_t updates_;
  const Origin origin_;
  int64_t limit_ = INT64_MAX;
  // The replicas whose gradients the current step has, in the order of arrival,
  // and those that the last one had.
  std::vector<int> replicas_;
  std::vector<int> last_replicas_;
  std::vector<Waiter> waiters_;
  std::vector<PendingSnapshot> pending_snapshots_;
  absl::Status abandoned_;
};

// The result of one push at all the chunks or tables that it goes to.
struct StepEntries {
  size_t duplicates = 0;
  size_t stale = 0;
  size_t no_room = 0;

  void Include(StepState::Entry entry) {
    duplicates += entry == StepState::Entry::kDuplicate;
    stale += entry == StepState::Entry::kStale;
    no_room += entry == StepState::Entry::kNoRoom;
  }
};

}  // namespace parasol

#endif  // PARASOL_PS_STEP_STEP_STATE_H_
