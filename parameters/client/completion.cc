#include "parameters/client/completion.h"

#include <utility>

namespace parasol {

void Completion::Expect(size_t operations) {
  absl::MutexLock lock(&mu_);
  unfinished_ += operations;
}

void Completion::Finish(const absl::Status& status,
                        const TrainingParameters::Outcome& outcome) {
  absl::MutexLock lock(&mu_);
  --unfinished_;
  if (!status.ok()) {
    status_.Update(status);
  } else if (std::exchange(has_outcome_, true)) {
    outcome_.Join(outcome);
  } else {
    outcome_ = outcome;
  }
}

void Completion::HoldMemory() {
  absl::MutexLock lock(&mu_);
  ++memory_holds_;
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

bool Completion::WaitFor(Clock& clock, absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  return clock.AwaitWithTimeout(mu_, absl::Condition(this, &Completion::Done),
                                limit);
}

TrainingParameters::Outcome Completion::outcome() const {
  absl::MutexLock lock(&mu_);
  return outcome_;
}

}  // namespace parasol
