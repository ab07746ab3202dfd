#include "cluster/hook/hook_watch.h"

#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kLastInterval = absl::Milliseconds(50);

// Returns true if workers have yet to tell losses of epochs that have ended, as
// they do with their heartbeats.
bool AwaitsLosses(const wire::JobStatus& status) {
  for (const wire::EpochEnd& end : status.epoch_end()) {
    if (!end.is_complete()) return true;
  }
  return false;
}

void LogUntold(const absl::Status& asked) {
  LOG(WARNING) << "hooks may not have been told of the last epochs: "
               << (asked.ok() ? "workers have not reported their losses"
                              : asked.message());
}

}  // namespace

HookWatch::HookWatch(std::unique_ptr<ChiefClient> chief, TrainingHooks& hooks,
                     Clock& clock)
    : chief_(std::move(chief)),
      hooks_(hooks),
      clock_(clock),
      thread_([this] { Run(); }) {}

HookWatch::~HookWatch() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void HookWatch::Run() {
  bool is_stopping = false;
  absl::Time end = absl::InfiniteFuture();
  while (true) {
    // A chief that is gone comes back, or has nothing to tell any more.
    const absl::StatusOr<wire::JobStatus> status = chief_->GetStatus();
    if (status.ok()) hooks_.Look(*status, /*is_exact=*/false);
    if (is_stopping) {
      if (status.ok() && !AwaitsLosses(*status)) return;
      if (clock_.Now() >= end) return LogUntold(status.status());
      clock_.Pause(kLastInterval);
      continue;
    }
    absl::MutexLock lock(&mu_);
    is_stopping =
        clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), kInterval);
    if (is_stopping) end = clock_.Now() + kLastLimit;
  }
}

}  // namespace parasol
