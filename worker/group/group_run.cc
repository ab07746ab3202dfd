#include "worker/group/group_run.h"

#include "base/log.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {

void GroupRun::Supersede() {
  absl::MutexLock lock(&mu_);
  is_superseded_ = true;
}

void GroupRun::Stop() {
  absl::MutexLock lock(&mu_);
  is_stopping_ = true;
}

absl::Status GroupRun::CheckMayGoOn() {
  {
    absl::MutexLock lock(&mu_);
    if (is_superseded_ || is_stopping_) return SupersededError();
  }
  return collective_->status();
}

absl::Status GroupRun::AwaitOwn(const std::function<bool()>& are_there) {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return are_there() || has_failed_ || is_superseded_ || is_stopping_;
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_news), kPollInterval);
      if (are_there() && !has_failed_ && !is_superseded_) {
        return absl::OkStatus();
      }
      if (is_superseded_ || is_stopping_) return SupersededError();
    }
    const absl::Status status = collective_->status();
    if (!status.ok()) return status;
  }
}

Collective::Done GroupRun::Count() {
  absl::MutexLock lock(&mu_);
  ++pending_;
  return [this](const absl::Status& result) {
    absl::MutexLock lock(&mu_);
    --pending_;
    has_failed_ |= !result.ok();
  };
}

absl::Status GroupRun::AwaitAll() {
  collective_->AllGather("", &met_, Count());
  return collective_->Await();
}

// What is in flight uses the sums, rows and gradients, as the next group will,
// and whoever ends the group from another thread may not have told it yet. An
// operation that is complete here is left to complete elsewhere.
void GroupRun::Release(const absl::Status& why) {
  bool has_pending;
  {
    absl::MutexLock lock(&mu_);
    has_pending = pending_ > 0;
  }
  if (has_pending) collective_->Abort(why);
  collective_->Await().IgnoreError();
  absl::MutexLock lock(&mu_);
  CHECK_EQ(pending_, 0);
}

}  // namespace parasol
