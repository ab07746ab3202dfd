#include "ml/input/object/attempts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "ml/input/web/web_client.h"

namespace parasol {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);

}  // namespace

absl::Status Attempts::Make(absl::FunctionRef<absl::Status()> attempt) const {
  absl::Duration pause = kFirstPause;
  absl::Duration taken;
  for (int i = 1;; ++i, pause *= 2) {
    const absl::Time begin = clock_.Now();
    const absl::Status status = attempt();
    taken += clock_.Now() - begin;
    if (!absl::IsUnavailable(status)) return status;
    if (i == kMost || (i >= kFewest && taken >= kMostTime)) {
      return absl::UnavailableError(absl::StrCat(
          status.message(), "; given up after ", i,
          i == 1 ? " attempt" : " attempts",
          i == kMost
              ? ""
              : absl::StrCat(", which took ", absl::FormatDuration(taken))));
    }
    const absl::Duration wait =
        std::max(pause, std::min(WebClient::WaitOf(status), kMostWait));
    LOG(WARNING) << status.message() << "; attempt " << i + 1 << " of " << kMost
                 << " in " << absl::FormatDuration(wait);
    clock_.Pause(wait);
  }
}

}  // namespace parasol
