#include "deploy/local/restart_policy.h"

#include <algorithm>

namespace parasol {
namespace {

constexpr int kFirstRetryableCode = 128;

}  // namespace

RestartPolicy::Decision RestartPolicy::Ended(const ProcessEnd& end,
                                             absl::Time now) {
  if (end.code() == 0) return {.verdict = Verdict::kDone};
  if (end.code() < kFirstRetryableCode) return {.verdict = Verdict::kFailed};
  while (!restarts_.empty() && restarts_.front() <= now - limits_.window) {
    restarts_.pop_front();
  }
  if (static_cast<int>(restarts_.size()) >= limits_.max_restarts) {
    return {.verdict = Verdict::kTooManyRestarts};
  }
  restarts_.push_back(now);
  const bool was_stable = now - started_ >= limits_.stable_after;
  const absl::Duration delay = was_stable
                                   ? limits_.first_delay
                                   : std::max(next_delay_, limits_.first_delay);
  next_delay_ = std::min(delay * 2, limits_.max_delay);
  return {.verdict = Verdict::kRestart,
          .delay = delay,
          .restart = static_cast<int>(restarts_.size())};
}

}  // namespace parasol
