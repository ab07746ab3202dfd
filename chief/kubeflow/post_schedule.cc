#include "chief/kubeflow/post_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol {

bool PostSchedule::IsDue(wire::JobPhase phase, absl::Time now) const {
  if (now >= next_) return true;
  const bool is_away = backoff_ > absl::ZeroDuration();
  return !is_away && phase != posted_phase_ && now >= *begun_ + kLeastInterval;
}

bool PostSchedule::IsDueAtTheEnd(wire::JobPhase phase) const {
  const bool is_away = last_.has_value() && absl::IsUnavailable(*last_);
  return !is_away && phase != posted_phase_;
}

std::optional<std::string> PostSchedule::Took(wire::JobPhase phase,
                                              absl::Time begun, absl::Time now,
                                              const absl::Status& result) {
  begun_ = begun;
  const bool is_news = result != last_;
  last_ = result;
  if (result.ok()) {
    posted_phase_ = phase;
    backoff_ = absl::ZeroDuration();
    next_ = begun + kInterval;
    if (!is_news) return std::nullopt;
    return "progress is posted to Kubeflow Trainer";
  }
  backoff_ = backoff_ == absl::ZeroDuration()
                 ? kInterval
                 : std::min(2 * backoff_, kMaxBackoff);
  // A server that was waited for has had its time.
  next_ = now + backoff_;
  if (!is_news) return std::nullopt;
  return absl::StrCat(
      "progress can't be posted to Kubeflow Trainer: ", result.message(),
      "; the training goes on, and it is tried again");
}

}  // namespace parasol
