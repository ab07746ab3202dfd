#include "deploy/remote/launcher_watch.h"

#include "absl/strings/match.h"
#include "deploy/remote/guard_protocol.h"

namespace parasol {

void LauncherWatch::Received(absl::string_view bytes, absl::Time now) {
  if (bytes.empty()) {
    is_closed_ = true;
    return;
  }
  heard_ = now;
  if (absl::StrContains(bytes, kTerminate)) terminates_ = true;
}

LauncherWatch::Verdict LauncherWatch::VerdictAt(absl::Time now) const {
  if (is_closed_ || now - heard_ >= kSilenceLimit) return Verdict::kKill;
  return terminates_ ? Verdict::kTerminate : Verdict::kRun;
}

}  // namespace parasol
