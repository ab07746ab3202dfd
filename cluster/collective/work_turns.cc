#include "cluster/collective/work_turns.h"

#include <utility>

namespace parasol {

WorkTurns::WorkTurns(Worker worker)
    : worker_(std::move(worker)), thread_([this] { Run(); }) {}

void WorkTurns::NoteBegun() {
  absl::MutexLock lock(&mu_);
  has_begun_ = true;
}

void WorkTurns::TakeTurn(absl::Duration limit) {
  is_taken_ = true;
  mu_.Unlock();
  worker_.work(limit);
  mu_.Lock();
  is_taken_ = false;
}

void WorkTurns::WorkToEnd() {
  absl::MutexLock lock(&mu_);
  ++waiting_;
  while (worker_.has_work()) {
    if (is_taken_) {
      worker_.interrupt();
      mu_.Await(absl::Condition(
          +[](bool* taken) { return !*taken; }, &is_taken_));
      continue;
    }
    TakeTurn(kIdle);
  }
  --waiting_;
}

void WorkTurns::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  worker_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void WorkTurns::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopped_) {
    const auto has_news = [this] {
      mu_.AssertReaderHeld();
      return stopped_ || (has_begun_ && !looks_soon_);
    };
    // Often: an alarm of Clock's would wake two threads.
    mu_.AwaitWithTimeout(absl::Condition(&has_news),
                         looks_soon_ ? kPatience : kIdle);
    const bool began = std::exchange(has_begun_, false);
    // Who has begun the first work after a pause may be about to wait for it.
    if (std::exchange(looks_soon_, began) == false && began) continue;
    while (IsFree() && worker_.has_work()) TakeTurn(kIdle);
    if (IsFree()) TakeTurn(absl::ZeroDuration());
  }
}

}  // namespace parasol
