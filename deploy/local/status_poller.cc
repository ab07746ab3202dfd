#include "deploy/local/status_poller.h"

#include <utility>

namespace parasol {

StatusPoller::StatusPoller(std::unique_ptr<ChiefClient> chief,
                           absl::Duration period, Clock& clock)
    : chief_(std::move(chief)),
      period_(period),
      clock_(clock),
      thread_(&StatusPoller::Run, this) {}

StatusPoller::~StatusPoller() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

std::optional<wire::JobStatus> StatusPoller::latest() const {
  absl::MutexLock lock(&mu_);
  return latest_;
}

void StatusPoller::Run() {
  while (true) {
    absl::StatusOr<wire::JobStatus> status = chief_->GetStatus();
    absl::MutexLock lock(&mu_);
    if (status.ok()) latest_ = *std::move(status);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), period_)) {
      return;
    }
  }
}

}  // namespace parasol
