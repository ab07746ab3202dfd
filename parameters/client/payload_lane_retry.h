#ifndef PARASOL_PARAMETERS_CLIENT_PAYLOAD_LANE_RETRY_H_
#define PARASOL_PARAMETERS_CLIENT_PAYLOAD_LANE_RETRY_H_

#include "absl/time/time.h"

namespace parasol {

// The times at which a worker asks a ps for payload lanes again after some
// could not be used: `first` after a failure, then 2, 4, 8 and 16 times `first`
// after each further one. A lane may have failed for a moment's reason: a ps
// that stood still, or a port that a firewall lets through since then. Not
// thread-safe.
class PayloadLaneRetry {
 public:
  explicit PayloadLaneRetry(absl::Duration first)
      : first_(first), pause_(first) {}

  // Notes at `now` that lanes can't be used. Does nothing if the time of the
  // next attempt is known.
  void NoteFailure(absl::Time now);
  // Notes that a lane works: the next failure is a first one.
  void NoteSuccess() { pause_ = first_; }

  bool IsDue(absl::Time now) const { return now >= at_; }
  // Notes that an attempt is under way: it ends with a NoteFailure(), or with
  // a NoteSuccess().
  void Begin() { at_ = absl::InfiniteFuture(); }

  // Forgets all failures.
  void Reset() { *this = PayloadLaneRetry(first_); }

 private:
  absl::Duration first_;
  absl::Duration pause_;  // time from a failure to the attempt after it
  absl::Time at_ = absl::InfiniteFuture();
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_PAYLOAD_LANE_RETRY_H_
