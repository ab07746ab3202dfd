#include "cluster/client/completion.h"

#include <utility>

namespace parasol {

void Completion::Finish(const absl::Status& status,
                        const ExchangeOutcome& outcome) {
  absl::MutexLock lock(&mu_);
  --unfinished_;
  status_.Update(status);
  if (!status.ok()) return;
  if (!std::exchange(has_outcome_, true)) {
    outcome_ = outcome;
    return;
  }
  outcome_.Join(outcome);
}

std::shared_ptr<const void> Completion::HoldMemory() {
  absl::MutexLock lock(&mu_);
  ++memory_holds_;
  return std::shared_ptr<const void>(
      this,
      [self = shared_from_this()](const void*) { self->ReleaseMemory(); });
}

void Completion::ReleaseMemory() {
  absl::MutexLock lock(&mu_);
  --memory_holds_;
}

absl::Status Completion::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Completion::Done));
  return status_;
}

bool Completion::WaitFor(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(this, &Completion::Done), limit);
}

ExchangeOutcome Completion::outcome() const {
  absl::MutexLock lock(&mu_);
  return outcome_;
}

}  // namespace parasol
