#include "cluster/inspection/clock_offset.h"

namespace parasol {

void ClockOffset::Observe(absl::Time sent, absl::Time received,
                          absl::Time there) {
  const absl::Duration delay = received - sent;
  // The own clock was set while the question was on its way.
  if (delay < absl::ZeroDuration()) return;
  if (received_ && *received_ <= received &&
      delay / 2 > delay_ / 2 + kDrift * (received - *received_)) {
    return;
  }
  received_ = received;
  delay_ = delay;
  ahead_ = there - (sent + delay / 2);
}

}  // namespace parasol
