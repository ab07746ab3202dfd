#include "chief/kubeflow/post_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

// Returns what failures of one kind have in common: the code, what failed (the
// server's address, or the number of its answer), and the words behind that
// without times and numbers of requests.
std::string KindOf(const absl::Status& failure) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(failure.message(), absl::MaxSplits(": ", 1));
  std::string kind = absl::StrCat(failure.raw_code(), " ", parts.first);
  for (const absl::string_view word : absl::StrSplit(parts.second, ' ')) {
    const bool has_digit =
        std::any_of(word.begin(), word.end(), absl::ascii_isdigit);
    if (!has_digit) absl::StrAppend(&kind, " ", word);
  }
  return kind;
}

}  // namespace

bool PostSchedule::IsDue(wire::JobPhase phase, absl::Time now) const {
  if (now >= next_) return true;
  const bool is_away = backoff_ > absl::ZeroDuration();
  return !is_away && phase != posted_phase_ && now >= *begun_ + kLeastInterval;
}

bool PostSchedule::IsDueAtTheEnd(wire::JobPhase phase) const {
  const bool is_away = last_.has_value() && absl::IsUnavailable(*last_);
  return !is_away && phase != posted_phase_;
}

bool PostSchedule::IsNews(const absl::Status& result, absl::Time now) {
  if (result.ok()) return std::exchange(said_ok_, true) != true;
  std::string kind = KindOf(result);
  const bool is_known = kind == said_failure_ &&
                        (said_ok_ == false || now < failure_said_at_ + kQuiet);
  if (is_known) return false;
  said_ok_ = false;
  said_failure_ = std::move(kind);
  failure_said_at_ = now;
  return true;
}

std::optional<std::string> PostSchedule::Took(wire::JobPhase phase,
                                              absl::Time begun, absl::Time now,
                                              const absl::Status& result) {
  begun_ = begun;
  const bool is_news = IsNews(result, now);
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
