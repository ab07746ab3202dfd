#include "coordinator/steps/progress_watch.h"

namespace parasol {

void ProgressWatch::Report(uint64_t worker, int64_t completed, bool holds_steps,
                           absl::Time now) {
  if (!holds_steps) return Forget(worker);
  const auto [it, is_new] =
      since_.try_emplace(worker, Since{.completed = completed, .time = now});
  if (is_new || completed <= it->second.completed) return;
  it->second = {.completed = completed, .time = now};
}

void ProgressWatch::StartOver(absl::Time now) {
  for (auto& [worker, since] : since_) since.time = now;
}

std::vector<uint64_t> ProgressWatch::Still(absl::Duration duration,
                                           absl::Time now) const {
  std::vector<uint64_t> still;
  for (const auto& [worker, since] : since_) {
    if (now - since.time >= duration) still.push_back(worker);
  }
  return still;
}

}  // namespace parasol
