#include "cluster/checkpoint/checkpoint_schedule.h"

#include <algorithm>

namespace parasol {

CheckpointSchedule::CheckpointSchedule(const job::CheckpointPolicy& policy,
                                       std::optional<int64_t> newest_step,
                                       absl::Time now)
    : every_steps_(policy.every_steps()),
      every_(policy.every_seconds() > 0 ? absl::Seconds(policy.every_seconds())
                                        : absl::InfiniteDuration()),
      newest_step_(newest_step),
      written_at_(now) {}

bool CheckpointSchedule::IsDue(int64_t step, absl::Time now) const {
  if (!MayTry(now)) return false;
  const int64_t newest = newest_step_.value_or(0);
  if (step <= newest) return false;
  const bool by_steps =
      every_steps_ > 0 && step / every_steps_ > newest / every_steps_;
  return by_steps || now - written_at_ >= every_;
}

std::optional<int64_t> CheckpointSchedule::NextStep() const {
  if (every_steps_ <= 0) return std::nullopt;
  return (newest_step_.value_or(0) / every_steps_ + 1) * every_steps_;
}

void CheckpointSchedule::Written(int64_t step, absl::Time now) {
  newest_step_ = step;
  written_at_ = now;
  StartOver();
}

void CheckpointSchedule::Failed(absl::Time now, absl::Duration max_backoff) {
  const absl::Duration backoff =
      absl::Seconds(1) * (1 << std::min(failures_, 10));
  next_try_ = now + std::min(backoff, max_backoff);
  ++failures_;
  failing_since_ = std::min(failing_since_, now);
}

void CheckpointSchedule::StartOver() {
  TryNow();
  failures_ = 0;
  failing_since_ = absl::InfiniteFuture();
}

}  // namespace parasol
