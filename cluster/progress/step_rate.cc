#include "cluster/progress/step_rate.h"

#include <algorithm>

namespace parasol {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(10);
// A rate that is measured over a standstill says nothing of what comes after.
constexpr absl::Duration kStandstill = absl::Seconds(5);

}  // namespace

void StepRate::Observe(int64_t global_step, absl::Time now) {
  if (!observed_.empty() && global_step < observed_.back().second) {
    observed_.clear();
  }
  if (observed_.empty() || observed_.back().second != global_step) {
    last_change_ = now;
  }
  observed_.emplace_back(now, global_step);
  while (observed_.front().first < now - kRateWindow) observed_.pop_front();
}

std::optional<absl::Duration> StepRate::TimeTo(int64_t end_step) const {
  if (observed_.empty() || end_step <= 0) return std::nullopt;
  const auto& [first_time, first_step] = observed_.front();
  const auto& [last_time, last_step] = observed_.back();
  if (last_step == first_step || last_time == first_time) return std::nullopt;
  if (last_time - last_change_ >= kStandstill) return std::nullopt;
  const double steps_left = std::max<int64_t>(0, end_step - last_step);
  return (last_time - first_time) * (steps_left / (last_step - first_step));
}

}  // namespace parasol
