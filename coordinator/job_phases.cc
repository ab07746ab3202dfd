#include "coordinator/job_phases.h"

#include <algorithm>

namespace parasol {
namespace {

// The finish_timeout of a chief that is itself told to go, at most.
constexpr absl::Duration kStopGrace = absl::Seconds(5);

}  // namespace

JobPhases::JobPhases(const Options& options, absl::Time now)
    : options_(options), since_(now) {
  if (options_.already_complete) Enter(wire::COMPLETE, now);
}

void JobPhases::Enter(wire::JobPhase phase, absl::Time now) {
  phase_ = phase;
  since_ = now;
  ++begun_;
  if (phase == wire::TRAINING) {
    training_since_ = now;
  } else if (training_since_ && !training_until_) {
    training_until_ = now;
  }
}

void JobPhases::Fail(absl::Status failure, absl::Time now) {
  if (HasEnded()) return;
  failure_ = std::move(failure);
  Enter(wire::FAILED, now);
}

std::optional<absl::Duration> JobPhases::Trained(absl::Time now) const {
  if (!training_since_) return std::nullopt;
  return training_until_.value_or(now) - *training_since_;
}

absl::Time JobPhases::LeaveDeadline(bool is_stopping) const {
  return since_ + (is_stopping ? std::min(kStopGrace, options_.finish_timeout)
                               : options_.finish_timeout);
}

std::optional<absl::Status> JobPhases::Outcome(bool all_left, bool is_stopping,
                                               absl::Time now) const {
  if (gave_up_) return gave_up_;
  if (!HasEnded()) return std::nullopt;
  const absl::Duration linger =
      options_.already_complete ? kCompleteLinger : absl::ZeroDuration();
  const bool may_end = all_left && now >= since_ + linger;
  if (!may_end && now < LeaveDeadline(is_stopping)) return std::nullopt;
  return failure_;
}

}  // namespace parasol
