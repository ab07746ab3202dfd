#ifndef PARASOL_CLUSTER_COLLECTIVE_SPINNING_H_
#define PARASOL_CLUSTER_COLLECTIVE_SPINNING_H_

#include "absl/time/time.h"

namespace parasol {

// How long a rank that waits for others looks for their messages again and
// again before it sleeps: to be woken takes longer than most messages do. A
// rank whose looking was in vain looks for half as long the next time, and soon
// not at all, but for one wait of kRetry. Pure. Not thread-safe.
class Spinning {
 public:
  static constexpr absl::Duration kLongest = absl::Microseconds(50);
  static constexpr int kRetry = 64;

  // Returns how long the next wait may look.
  absl::Duration Next() {
    if (limit_ >= kShortest) return limit_;
    if (++skipped_ < kRetry) return absl::ZeroDuration();
    skipped_ = 0;
    limit_ = kLongest;
    return limit_;
  }
  // Notes whether a wait that looked saw something.
  void Note(bool has_seen) { limit_ = has_seen ? kLongest : limit_ / 2; }

 private:
  static constexpr absl::Duration kShortest = absl::Microseconds(10);

  absl::Duration limit_ = kLongest;
  int skipped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SPINNING_H_
