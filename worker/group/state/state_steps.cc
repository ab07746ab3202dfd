#include "worker/group/state/state_steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {

StateVersion StateSteps::version() const {
  absl::MutexLock lock(&mu_);
  return version_;
}

void StateSteps::Set(const StateVersion& version) {
  absl::MutexLock lock(&mu_);
  version_ = version;
}

void StateSteps::Replace(const StateVersion& version, bool has_other_values) {
  absl::MutexLock lock(&mu_);
  // Gradients of this step have been computed from the other values, or will
  // be.
  if (has_other_values && pulled_ == version.step && ended_.ok()) {
    ended_ = absl::UnavailableError(absl::StrCat(
        "another worker has other variables after step ", version.step,
        ", with updates that this one lacks: it has to start again"));
  }
  version_ = version;
}

absl::StatusOr<int64_t> StateSteps::NotePull() {
  absl::MutexLock lock(&mu_);
  if (!version_.is_there()) {
    return absl::FailedPreconditionError("this worker has no variables yet");
  }
  return pulled_ = version_.step;
}

std::optional<absl::Status> StateSteps::Await(int64_t step,
                                              absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  const auto has_result = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return version_.step >= step || !ended_.ok();
  };
  if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&has_result), limit)) {
    return std::nullopt;
  }
  return version_.step >= step ? absl::OkStatus() : ended_;
}

void StateSteps::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
}

absl::Status StateSteps::ended() const {
  absl::MutexLock lock(&mu_);
  return ended_;
}

absl::StatusOr<int64_t> StateSteps::Hold() {
  absl::MutexLock lock(&mu_);
  if (!version_.is_there()) {
    return absl::FailedPreconditionError("this worker has no variables yet");
  }
  if (IsStaying()) return version_.step;
  held_ = {.step = version_.step, .until = clock_.Now() + kHoldLimit};
  return version_.step;
}

absl::Status StateSteps::AwaitNoHold() {
  absl::MutexLock lock(&mu_);
  const auto may_go_on = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !held_ || version_.step < held_->step ||
           (IsStaying() && ends_those_that_stay_);
  };
  while (!may_go_on() && held_->until > clock_.Now()) {
    clock_.AwaitWithTimeout(mu_, absl::Condition(&may_go_on),
                            std::min(held_->until - clock_.Now(), kHoldLimit));
  }
  if (!may_go_on()) held_.reset();
  if (!held_ || version_.step < held_->step) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("the worker is stopping, and its variables stay with the "
                   "checkpoint of step ",
                   held_->step));
}

absl::Status StateSteps::AwaitCut(int64_t step,
                                  const std::function<bool()>& is_cancelled) {
  absl::MutexLock lock(&mu_);
  if (held_ && !IsStaying()) {
    held_ = {.step = step, .until = clock_.Now() + kHoldLimit};
  }
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return version_.step >= step || !ended_.ok();
  };
  while (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_there),
                                  kPollInterval)) {
    if (is_cancelled()) return absl::CancelledError("the chief waits no more");
    if (held_ && !IsStaying()) held_->until = clock_.Now() + kHoldLimit;
  }
  return version_.step >= step ? absl::OkStatus() : ended_;
}

void StateSteps::EndCut(bool stays) {
  absl::MutexLock lock(&mu_);
  if (stays) {
    held_ = {.step = version_.step, .until = absl::InfiniteFuture()};
  } else if (!IsStaying()) {
    held_.reset();
  }
}

void StateSteps::GoOn() {
  absl::MutexLock lock(&mu_);
  if (IsStaying()) held_.reset();
}

bool StateSteps::stays() const {
  absl::MutexLock lock(&mu_);
  return IsStaying();
}

void StateSteps::EndThoseThatStay() {
  absl::MutexLock lock(&mu_);
  ends_those_that_stay_ = true;
}

}  // namespace parasol
