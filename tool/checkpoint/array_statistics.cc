#include "tool/checkpoint/array_statistics.h"

#include <algorithm>
#include <cmath>

namespace parasol {

void ArrayStatistics::Add(absl::Span<const float> values) {
  for (const float value : values) {
    if (std::isfinite(value)) {
      AddFinite(value);
    } else if (std::isnan(value)) {
      ++nans_;
    } else {
      ++infinities_;
    }
  }
}

// Welford's method: exact also where the mean is far from 0.
void ArrayStatistics::AddFinite(float value) {
  const double x = value;
  min_ = finite_ > 0 ? std::min(min_, x) : x;
  max_ = finite_ > 0 ? std::max(max_, x) : x;
  if (value == 0) ++zeros_;
  ++finite_;
  const double from_old_mean = x - mean_;
  mean_ += from_old_mean / static_cast<double>(finite_);
  squares_ += from_old_mean * (x - mean_);
}

double ArrayStatistics::deviation() const {
  return finite_ > 0 ? std::sqrt(squares_ / static_cast<double>(finite_))
                     : kNone;
}

}  // namespace parasol
