#include "ps/shard/cut_hold.h"

#include <utility>

namespace parasol {

CutHold::CutHold(Clock& clock)
    : clock_(clock), thread_([this] { WatchLimit(); }) {}

CutHold::~CutHold() {
  {
    absl::MutexLock lock(&mu_);
    shutting_down_ = true;
  }
  thread_.join();
}

absl::StatusOr<UpdateBounds> CutHold::Hold(
    std::shared_ptr<ParameterShard> shard) {
  {
    // The limit of an earlier hold does not end this one.
    absl::MutexLock lock(&mu_);
    end_ = clock_.Now() + kLimit;
  }
  const absl::StatusOr<UpdateBounds> updates = shard->Hold();
  if (!updates.ok()) return updates;
  std::shared_ptr<ParameterShard> other;
  {
    absl::MutexLock lock(&mu_);
    other = shard_.lock();
    shard_ = shard;
    is_held_ = true;
    end_ = clock_.Now() + kLimit;
  }
  if (other != nullptr && other != shard) other->EndHold();
  return updates;
}

void CutHold::WatchLimit() {
  while (true) {
    std::shared_ptr<ParameterShard> shard;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_held_ || shutting_down_;
      };
      mu_.Await(absl::Condition(&has_work));
      if (!shutting_down_ && clock_.Now() < end_) {
        clock_.AwaitWithTimeout(mu_, absl::Condition(&shutting_down_),
                                end_ - clock_.Now());
        continue;
      }
      if (!is_held_) return;
      is_held_ = false;
      shard = shard_.lock();
      shard_.reset();
    }
    if (shard != nullptr) shard->EndHold();
  }
}

}  // namespace parasol
