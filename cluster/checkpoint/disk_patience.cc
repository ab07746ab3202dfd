#include "cluster/checkpoint/disk_patience.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr absl::Duration kPoll = absl::Milliseconds(100);

// A full disk is for the operator; another process may read what this one
// can't.
absl::Status GaveUp(const absl::Status& error, absl::Duration limit) {
  const std::string message =
      absl::StrCat(error.message(), "; tried again for ",
                   absl::FormatDuration(limit), ", giving up");
  return absl::IsResourceExhausted(error)
             ? absl::InvalidArgumentError(absl::StrCat(message, ": make room"))
             : absl::UnavailableError(message);
}

}  // namespace

bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error);
}

absl::Status DiskPatience::Failed(const absl::Status& error) {
  if (!MayPass(error)) return error;
  const absl::Time failed = clock_.Now();
  failing_since_ = std::min(failing_since_, failed);
  const bool is_full = absl::IsResourceExhausted(error);
  const absl::Duration limit = is_full ? options_.full_limit : options_.limit;
  const absl::Time give_up = failing_since_ + limit;
  if (failed >= give_up) return GaveUp(error, limit);
  if (failed >= next_log_) {
    LOG(WARNING) << error.message() << "; trying again";
    next_log_ = failed + kLogInterval;
  }
  options_.on_trouble(error.message());
  const absl::Time end = std::min(failed + wait_, give_up);
  wait_ = std::min(2 * wait_, kLongestWait);
  for (absl::Time now = failed; now < end; now = clock_.Now()) {
    if (options_.cancelled()) {
      return absl::CancelledError(
          absl::StrCat("stopped while trying again: ", error.message()));
    }
    clock_.Pause(std::min(kPoll, end - now));
  }
  return absl::OkStatus();
}

}  // namespace parasol
