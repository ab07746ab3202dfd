#include "cluster/progress/curve_points.h"

#include <algorithm>
#include <numeric>

namespace parasol {
namespace {

int64_t NextMultiple(int64_t step, int64_t of) { return (step / of + 1) * of; }

}  // namespace

int64_t CurvePoints::NextAfter(int64_t step) const {
  const int64_t end = NextMultiple(step, steps_per_epoch_);
  return every_steps_ > 0 ? std::min(end, NextMultiple(step, every_steps_))
                          : end;
}

int64_t CurvePoints::PartOf(int64_t number) const {
  const int64_t ends = number / steps_per_epoch_;
  if (every_steps_ <= 0) return ends;
  // Steps that are both count once; the least common multiple may be too large
  // for a number.
  const int64_t factor =
      every_steps_ / std::gcd(steps_per_epoch_, every_steps_);
  return ends + number / every_steps_ - ends / factor;
}

}  // namespace parasol
