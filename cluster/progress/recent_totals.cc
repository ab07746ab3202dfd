#include "cluster/progress/recent_totals.h"

#include <algorithm>
#include <utility>

namespace parasol {

std::vector<double> RecentTotals::Rates(std::vector<double> totals,
                                        absl::Time now) {
  std::vector<double> rates(totals.size());
  while (samples_.size() > 1 && (samples_.size() >= kMaxSamples ||
                                 now - samples_[1].time >= kWindow)) {
    samples_.pop_front();
  }
  if (!samples_.empty()) {
    const Sample& base = samples_.front();
    const double seconds = absl::ToDoubleSeconds(now - base.time);
    for (size_t i = 0; i < totals.size() && seconds > 0; ++i) {
      rates[i] = std::max(0., (totals[i] - base.totals[i]) / seconds);
    }
  }
  samples_.push_back({now, std::move(totals)});
  return rates;
}

}  // namespace parasol
