#include "parameters/client/payload_lane_retry.h"

#include <algorithm>

namespace parasol {
namespace {

// Greatest pause, in first pauses.
constexpr int kMaxPauses = 16;

}  // namespace

void PayloadLaneRetry::NoteFailure(absl::Time now) {
  if (at_ != absl::InfiniteFuture()) return;
  at_ = now + pause_;
  pause_ = std::min(2 * pause_, kMaxPauses * first_);
}

}  // namespace parasol
