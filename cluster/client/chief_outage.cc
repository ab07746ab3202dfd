#include "cluster/client/chief_outage.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);

}  // namespace

ChiefOutage::ChiefOutage(absl::Duration limit, absl::Time now)
    : limit_(limit), last_answer_(now), next_log_(now + kLogInterval) {}

void ChiefOutage::Answered(absl::Time now) {
  last_answer_ = now;
  next_log_ = now + kLogInterval;
}

absl::Status ChiefOutage::Failed(const absl::Status& error, absl::Time now) {
  const absl::Duration silence = now - last_answer_;
  if (silence >= limit_) {
    return absl::UnavailableError(
        absl::StrCat(error.message(), ": no answer for ",
                     absl::FormatDuration(limit_), ", giving up"));
  }
  if (now >= next_log_) {
    LOG(WARNING) << "waiting for the chief: " << error.message()
                 << "; no answer for "
                 << absl::FormatDuration(absl::Floor(silence, absl::Seconds(1)))
                 << " of at most " << absl::FormatDuration(limit_);
    next_log_ = now + kLogInterval;
  }
  return absl::OkStatus();
}

}  // namespace parasol
