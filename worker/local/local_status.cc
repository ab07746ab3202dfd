#include "worker/local/local_status.h"

namespace parasol {
namespace {

// Length of a measurement of the rate.
constexpr absl::Duration kRateInterval = absl::Seconds(2);

}  // namespace

void LocalStatus::Update(absl::FunctionRef<void(wire::JobStatus&)> change) {
  absl::MutexLock lock(&mu_);
  change(status_);
}

void LocalStatus::NoteStep(int64_t completed, int64_t batch_size,
                           absl::Time now) {
  absl::MutexLock lock(&mu_);
  status_.set_global_step(completed);
  if (!mark_.has_value()) mark_ = Mark{now, completed};
  const absl::Duration elapsed = now - mark_->time;
  if (elapsed < kRateInterval) return;
  const auto examples =
      static_cast<double>((completed - mark_->step) * batch_size);
  status_.set_examples_per_second(examples / absl::ToDoubleSeconds(elapsed));
  mark_ = Mark{now, completed};
}

void LocalStatus::Pause() {
  absl::MutexLock lock(&mu_);
  mark_.reset();
}

wire::JobStatus LocalStatus::Get() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

}  // namespace parasol
