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

bool Contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

absl::Status StepState::CheckNotAhead(int64_t step) const {
  if (step <= updates_ || !abandoned_.ok()) return abandoned_;
  if (origin_ == Origin::kRestored) {
    return absl::UnavailableError(absl::StrCat(
        "gradient of step ", step,
        ", but what was restored is at "
        "step ",
        updates_, " and the chief has not said yet that it is over"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient of step ", step, " while step ", updates_, " is not complete"));
}

bool StepState::IsNew(const StepPush& push, size_t wanted) const {
  return push.step == updates_ && !Contains(replicas_, push.replica) &&
         collected() < wanted;
}

StepState::Entry StepState::Enter(const StepPush& push, size_t wanted) {
  if (push.step < updates_) {
    const bool was_in =
        push.step == updates_ - 1 && Contains(last_replicas_, push.replica);
    return was_in ? Entry::kDuplicate : Entry::kStale;
  }
  if (Contains(replicas_, push.replica)) return Entry::kDuplicate;
  if (collected() >= wanted) return Entry::kStale;
  replicas_.push_back(push.replica);
  return Entry::kNew;
}

void StepState::Complete(Released& released) {
  last_replicas_.swap(replicas_);
  Advance(updates_ + 1, released);
}

bool StepState::GoOnAt(int64_t updates, Released& released) {
  if (origin_ != Origin::kRestored || updates <= updates_) return false;
  LOG_EVERY(WARNING, kJumpLogPeriod)
      << "values restored at step " << updates_ << " go on at step " << updates
      << ", where the workers are: the updates in between are lost";
  for (const Waiter& waiter : waiters_) {
    if (waiter.has_gradient) waiter.latch->MarkDropped();
  }
  last_replicas_.clear();
  Advance(updates, released);
  return true;
}

void StepState::NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                         Released& released) {
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
                           std::shared_ptr<Latch> latch, Released& released,
                           const void* key) {
  CancelSnapshot(key);
  pending_snapshots_.push_back({.updates = updates,
                                .capture = std::move(capture),
                                .latch = std::move(latch),
                                .key = key});
  SnapshotIfDue(released);
}

void StepState::CancelSnapshot(const void* key) {
  std::erase_if(pending_snapshots_, [key](const PendingSnapshot& pending) {
    return pending.key == key;
  });
}

void StepState::Abandon(const absl::Status& status, Released& released) {
  abandoned_ = status;
  SnapshotIfDue(released);
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    Wait(std::move(waiter), released);
  }
}

void StepState::Advance(int64_t updates, Released& released) {
  updates_ = updates;
  replicas_.clear();
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
  std::erase_if(pending_snapshots_, [&](PendingSnapshot& pending) {
    if (!TakeIfDue(pending)) return false;
    released.Add(std::move(pending.latch));
    return true;
  });
}

bool StepState::TakeIfDue(const PendingSnapshot& pending) const {
  if (updates_ == pending.updates) {
    pending.capture();
  } else if (updates_ < pending.updates) {
    if (abandoned_.ok()) return false;
    pending.latch->Fail(abandoned_);
  } else {
    pending.latch->Fail(absl::AbortedError(
        absl::StrCat("has had ", updates_, " updates, not ", pending.updates)));
  }
  return true;
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

}  // namespace parasol
