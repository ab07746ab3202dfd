#include "cluster/client/completion.h"

namespace parasol {

void Completion::Finish(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  --unfinished_;
  status_.Update(status);
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

}  // namespace parasol
