#include "ps/step/step_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"

namespace parasol {
namespace {

// Far more than streams carry at a time: it stops one that comes and goes.
constexpr size_t kMaxWaiters = 16384;

// A shard's places jump within the same moment.
constexpr absl::Duration kJumpLogPeriod = absl::Seconds(10);

// Limit on the workers remembered per step. A worker beyond it is not known to
// have pushed to the step.
constexpr size_t kMaxWorkers = 4096;

template <typename T>
bool Contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

absl::Status StepState::CheckNotAhead(int64_t step) const {
  if (step <= updates_ || origin_ == Origin::kRestored) return abandoned_;
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient of step ", step, " while step ", updates_, " is not complete"));
}

StepState::Entry StepState::Enter(const StepPush& push, Released& released) {
  if (push.step > updates_) JumpTo(push.step, released);
  if (push.step < updates_) {
    const bool was_in =
        push.step == updates_ - 1 && Contains(last_replicas_, push.replica);
    return was_in ? Entry::kDuplicate : Entry::kStale;
  }
  if (workers_.size() < kMaxWorkers && !HasPushed(push.worker_incarnation)) {
    workers_.push_back(push.worker_incarnation);
  }
  if (Contains(replicas_, push.replica)) return Entry::kDuplicate;
  replicas_.push_back(push.replica);
  return Entry::kNew;
}

void StepState::Complete(Released& released) {
  last_replicas_.swap(replicas_);
  Advance(updates_ + 1, released);
}

void StepState::NotifyAt(int64_t updates, uint64_t worker_incarnation,
                         std::shared_ptr<Latch> latch, Released& released) {
  const bool expected =
      updates == updates_ + 1 && HasPushed(worker_incarnation);
  if (updates > updates_ && origin_ == Origin::kRestored && !expected) {
    JumpTo(updates, released);
  }
  Wait({.updates = updates, .latch = std::move(latch)}, released);
}

void StepState::NotifyWhenComplete(const StepPush& push,
                                   std::shared_ptr<Latch> latch,
                                   Released& released) {
  Wait({.updates = push.step + 1,
        .has_gradient = true,
        .latch = std::move(latch)},
       released);
}

void StepState::SnapshotAt(int64_t updates, std::function<void()> capture,
                           std::shared_ptr<Latch> latch, Released& released) {
  pending_snapshot_ = {.updates = updates,
                       .capture = std::move(capture),
                       .latch = std::move(latch)};
  SnapshotIfDue(released);
}

void StepState::CancelSnapshot() { pending_snapshot_ = PendingSnapshot(); }

void StepState::Abandon(const absl::Status& status, Released& released) {
  abandoned_ = status;
  SnapshotIfDue(released);
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    Wait(std::move(waiter), released);
  }
}

void StepState::JumpTo(int64_t updates, Released& released) {
  LOG_EVERY(WARNING, kJumpLogPeriod)
      << "values restored at step " << updates_ << " go on at step " << updates
      << ", where the workers are: the updates in between are lost";
  for (const Waiter& waiter : waiters_) {
    if (waiter.has_gradient) waiter.latch->MarkDropped();
  }
  last_replicas_.clear();
  Advance(updates, released);
}

void StepState::Advance(int64_t updates, Released& released) {
  updates_ = updates;
  replicas_.clear();
  workers_.clear();
  SnapshotIfDue(released);
  const auto waits = [this](const Waiter& waiter) {
    return waiter.updates > updates_;
  };
  const auto done =
      std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  for (auto waiter = done; waiter != waiters_.end(); ++waiter) {
    released.Add(std::move(waiter->latch));
  }
  waiters_.erase(done, waiters_.end());
}

void StepState::SnapshotIfDue(Released& released) {
  if (pending_snapshot_.latch == nullptr) return;
  if (updates_ == pending_snapshot_.updates) {
    pending_snapshot_.capture();
  } else if (updates_ < pending_snapshot_.updates) {
    if (abandoned_.ok()) return;
    pending_snapshot_.latch->Fail(abandoned_);
  } else {
    pending_snapshot_.latch->Fail(absl::AbortedError(absl::StrCat(
        "has had ", updates_, " updates, not ", pending_snapshot_.updates)));
  }
  released.Add(std::move(pending_snapshot_.latch));
  CancelSnapshot();
}

void StepState::Wait(Waiter waiter, Released& released) {
  if (waiter.updates > updates_) {
    if (abandoned_.ok() && waiters_.size() < kMaxWaiters) {
      waiters_.push_back(std::move(waiter));
      return;
    }
    waiter.latch->Fail(
        abandoned_.ok()
            ? absl::ResourceExhaustedError(absl::StrCat(
                  kMaxWaiters,
                  " operations of workers wait for this step already"))
            : abandoned_);
  }
  released.Add(std::move(waiter.latch));
}

bool StepState::HasPushed(uint64_t worker_incarnation) const {
  return Contains(workers_, worker_incarnation);
}

}  // namespace parasol
