#ifndef PARASOL_CLUSTER_PROGRESS_RECENT_TOTALS_H_
#define PARASOL_CLUSTER_PROGRESS_RECENT_TOTALS_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/time/time.h"

namespace parasol {

// Totals that grow, and how fast they have grown over the last seconds. Pure.
class RecentTotals {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(8);
  static constexpr size_t kMaxSamples = 64;

  // Takes the totals at `now`, always as many, and returns how much each has
  // grown in a second since kWindow ago, or the first call.
  std::vector<double> Rates(std::vector<double> totals, absl::Time now);

 private:
  struct Sample {
    absl::Time time;
    std::vector<double> totals;
  };

  std::deque<Sample> samples_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_RECENT_TOTALS_H_
