#include "cluster/checkpoint/disk_patience.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr absl::Duration kPoll = absl::Milliseconds(100);

}  // namespace

bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error);
}

absl::Status DiskPatience::Failed(const absl::Status& error) {
  if (!MayPass(error)) return error;
  const absl::Time failed = clock_.Now();
  give_up_ = std::min(give_up_, failed + options_.limit);
  if (failed >= give_up_) {
    return absl::UnavailableError(
        absl::StrCat(error.message(), "; tried again for ",
                     absl::FormatDuration(options_.limit), ", giving up"));
  }
  if (failed >= next_log_) {
    LOG(WARNING) << error.message() << "; trying again";
    next_log_ = failed + kLogInterval;
  }
  options_.on_trouble(error.message());
  const absl::Time end = failed + wait_;
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
