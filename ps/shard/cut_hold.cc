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
  std::shared_ptr<ParameterShard> other;
  {
    absl::MutexLock lock(&mu_);
    if (shard_ != shard) other = std::move(shard_);
    shard_ = shard;
    end_ = clock_.Now() + kLimit;
  }
  if (other != nullptr) other->EndHold();
  return shard->Hold();
}

void CutHold::WatchLimit() {
  while (true) {
    std::shared_ptr<ParameterShard> shard;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return IsHeld() || shutting_down_;
      };
      mu_.Await(absl::Condition(&has_work));
      if (!shutting_down_ && clock_.Now() < end_) {
        clock_.AwaitWithTimeout(mu_, absl::Condition(&shutting_down_),
                                end_ - clock_.Now());
        continue;
      }
      shard = std::move(shard_);
      if (shutting_down_ && shard == nullptr) return;
    }
    shard->EndHold();
  }
}

}  // namespace parasol
