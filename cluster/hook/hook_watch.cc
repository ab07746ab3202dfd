#include "cluster/hook/hook_watch.h"

#include <utility>

namespace parasol {

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
  bool is_last = false;
  while (true) {
    // A chief that is gone comes back, or has nothing to tell any more.
    const absl::StatusOr<wire::JobStatus> status = chief_->GetStatus();
    if (status.ok()) hooks_.Look(*status, /*is_exact=*/false);
    if (is_last) return;
    absl::MutexLock lock(&mu_);
    is_last =
        clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), kInterval);
  }
}

}  // namespace parasol
