#ifndef PARASOL_CLUSTER_PROGRESS_STEP_RATE_H_
#define PARASOL_CLUSTER_PROGRESS_STEP_RATE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace parasol {

// Measures the rate of the global step over the last ten seconds.
class StepRate {
 public:
  // Adds an observation. A step smaller than the last one (a restored
  // checkpoint) starts anew.
  void Observe(int64_t global_step, absl::Time now);
  // Returns the time until `end_step` at the measured rate; nullopt if it
  // is 0 (there is no end, or it is not known), if there is not enough to
  // measure the rate by, or if no step was done for five seconds.
  std::optional<absl::Duration> TimeTo(int64_t end_step) const;

 private:
  std::deque<std::pair<absl::Time, int64_t>> observed_;
  absl::Time last_change_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_STEP_RATE_H_
