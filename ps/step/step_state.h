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

// One gradient of a synchronous step.
struct StepPush {
  int64_t step = 0;
  int replica = 0;
  // Who computed it: a replica may move from one worker to another.
  uint64_t worker_incarnation = 0;
};

// How far something that is trained synchronously has come, which gradients of
// its current step it has, and who waits for it. The step is the number of
// updates that it has had. Not thread-safe: its owner's lock guards it, and
// what it adds to a Released is counted down after that.
//
// A restored one may be behind the workers: what was done since the checkpoint
// is lost, and will not be sent again by those who had it acknowledged. It
// jumps, without updates, to the step of whoever shows that he is ahead.
class StepState {
 public:
  enum class Origin { kInitial, kRestored };

  StepState(int64_t updates, Origin origin)
      : updates_(updates), origin_(origin) {}

  int64_t updates() const { return updates_; }
  // Gradients of the current step.
  size_t collected() const { return replicas_.size(); }

  // Whether Enter() may be called, also later.
  //   InvalidArgument  the gradient is of a step that has not begun.
  // Once it is abandoned, that error.
  absl::Status CheckNotAhead(int64_t step) const;

  enum class Entry {
    kNew,        // a gradient of the current step, not seen before
    kDuplicate,  // seen before, in this step or as one of the last one
    kStale,      // its step was completed without it
  };
  // After CheckNotAhead(). A restored one may jump, and drops the gradients
  // that it has: `collected()` is then 1.
  Entry Enter(const StepPush& push, Released& released);

  // An update was applied.
  void Complete(Released& released);

  // Counts `latch` down at `updates`. That `worker_incarnation` waits for them
  // makes a restored one jump there, unless they are what its own gradient of
  // the current step leads to.
  void NotifyAt(int64_t updates, uint64_t worker_incarnation,
                std::shared_ptr<Latch> latch, Released& released);

  // The same for a gradient that has been entered in this or an earlier step.
  void NotifyWhenComplete(const StepPush& push, std::shared_ptr<Latch> latch,
                          Released& released);

  // Calls `capture`, under the owner's lock, at exactly `updates`, then counts
  // `latch` down; fails it with Aborted when that is over. One at a time.
  void CaptureAt(int64_t updates, std::function<void()> capture,
                 std::shared_ptr<Latch> latch, Released& released);
  void CancelCapture();

  // Fails all who wait, and who will.
  void Abandon(const absl::Status& status, Released& released);

 private:
  struct Waiter {
    int64_t updates = 0;
    bool has_gradient = false;
    std::shared_ptr<Latch> latch = nullptr;
  };
  struct Capture {
    int64_t updates = 0;
    std::function<void()> capture = nullptr;
    std::shared_ptr<Latch> latch = nullptr;
  };

  void JumpTo(int64_t updates, Released& released);
  void Advance(int64_t updates, Released& released);
  void CaptureIfDue(Released& released);
  void Wait(Waiter waiter, Released& released);
  bool HasPushed(uint64_t worker_incarnation) const;

  int64_t updates_;
  const Origin origin_;
  // Of the current step, and of the last one: the replicas whose gradients it
  // has, or had, in the order of arrival.
  std::vector<int> replicas_;
  std::vector<int> last_replicas_;
  // Who pushed to the current step, also duplicates.
  std::vector<uint64_t> workers_;
  std::vector<Waiter> waiters_;
  Capture capture_;  // none while its latch is null
  absl::Status abandoned_;
};

// What became of one push at all the places that it goes to.
struct StepEntries {
  size_t duplicates = 0;
  size_t stale = 0;

  void Include(StepState::Entry entry) {
    duplicates += entry == StepState::Entry::kDuplicate;
    stale += entry == StepState::Entry::kStale;
  }
};

}  // namespace parasol

#endif  // PARASOL_PS_STEP_STEP_STATE_H_
